package logs

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plugin/access"
	"github.com/windows-machine-config/wmco/internal/plugin/fleet"
	"github.com/windows-machine-config/wmco/internal/plugin/logview"
	"github.com/windows-machine-config/wmco/internal/plugin/nodelogs"
	"github.com/windows-machine-config/wmco/internal/plugin/operatorexec"
)

// operator answers in place of one.
type operator struct {
	asked  []string
	status int
}

func (o *operator) Run(ctx context.Context, arguments []string, streams operatorexec.Streams) (int, error) {
	o.asked = arguments
	_, err := streams.Out.Write([]byte("by the operator\n"))
	if slices.Contains(arguments, "--follow=true") {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	return o.status, err
}

// served are logs as a kubelet serves them, which answers with a status if that is not 0.
func served(t *testing.T, status int) func(string) (logview.Source, error) {
	t.Helper()
	folder := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(folder, "kubelet"), 0o755),
		os.WriteFile(filepath.Join(folder, "kubelet", "kubelet.log"), []byte("by the kubelet\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != 0 {
			http.Error(w, "no", status)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	return func(string) (logview.Source, error) {
		return nodelogs.Files{Client: server.Client(), Base: base}, nil
	}
}

func TestWhoReadsALog(t *testing.T) {
	node := fleet.Instance{}
	node.Name = "win-1"
	node.Status.NodeRef = &v1alpha1.NodeReference{Name: "node-1"}
	never := fleet.Instance{}
	never.Name = "win-2"
	for name, c := range map[string]struct {
		of          fleet.Instance
		status      int // of the kubelet
		out, errOut string
		asked, fail string
	}{
		"the kubelet of a node": {of: node, out: "by the kubelet\n"},
		"the operator, if the kubelet does not answer": {of: node, status: http.StatusBadGateway, out: "by the operator\n",
			errOut: "The kubelet of node node-1 does not serve logs (502 Bad Gateway: no): the operator reads them over SSH.\n",
			asked:  "logs win-1 kubelet --tail=5 --since=0s --follow=false"},
		"the operator, of a host that is no node": {of: never, out: "by the operator\n",
			errOut: "win-2 is not a node yet: the operator reads its logs over SSH.\n",
			asked:  "logs win-2 kubelet --tail=5 --since=0s --follow=false"},
		"nobody, if a right is missing": {of: node, status: http.StatusForbidden, fail: "logs of node node-1: 403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &operator{}
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			command := &command{Access: access.New(streams, clock.RealClock{}), operator: o, kubelet: served(t, c.status), tail: 5}
			err := command.of(t.Context(), c.of, []string{"kubelet"})
			if c.fail == "" && err != nil || c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
				t.Errorf("the error is %v", err)
			}
			if out.String() != c.out || errOut.String() != c.errOut || strings.Join(o.asked, " ") != c.asked {
				t.Errorf("it prints %q and %q, and has asked the operator %q", out.String(), errOut.String(), o.asked)
			}
		})
	}
}

func TestALogThatTheOperatorFollowsEndsWhenItIsInterrupted(t *testing.T) {
	never := fleet.Instance{}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	command := &command{Access: access.New(streams, clock.RealClock{}), operator: &operator{}, follow: true}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := command.of(ctx, never, []string{"kubelet"}); err != nil {
		t.Error(err)
	}
}

func TestTheOperatorsFailureIsTheCommands(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	command := &command{Access: access.New(streams, clock.RealClock{}), operator: &operator{status: 1}}
	if err := command.of(t.Context(), fleet.Instance{}, nil); !errors.Is(err, operatorexec.ExitStatus(1)) {
		t.Errorf("the error is %v", err)
	}
}
