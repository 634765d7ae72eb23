package logs

import (
	"context"
	"errors"
	"io"
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
	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/nodelogs"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// operator is a fake of the operator's command.
type operator struct {
	arguments []string
	status    int
	err       error
}

func (o *operator) Run(ctx context.Context, arguments []string, streams podexec.Streams) (int, error) {
	o.arguments = arguments
	if o.err != nil {
		return 0, o.err
	}
	_, err := streams.Out.Write([]byte("by the operator\n"))
	if slices.Contains(arguments, "--follow=true") {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	return o.status, err
}

// newKubelet returns logs like a kubelet. A status other than 0 makes every request fail with this status.
func newKubelet(t *testing.T, status int) func(string) (kubelet, error) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "kubelet"), 0o755),
		os.WriteFile(filepath.Join(dir, "kubelet", "kubelet.log"), []byte("by the kubelet\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case status != 0:
			http.Error(w, "no", status)
		case query.Get("query") == "kubelet": // unknown to Windows as a source
			_, _ = io.WriteString(w, "\noptions present and query resolved to log files for [kubelet]\ntry without specifying options\n")
		case query.Has("query"):
			_, _ = io.WriteString(w, "\n   ProviderName: "+query.Get("query")+", the last "+query.Get("tailLines")+"\n")
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	return func(string) (kubelet, error) {
		return nodelogs.Files{Client: server.Client(), Base: base}, nil
	}
}

func TestLogs_ReadByKubeletOrOperator(t *testing.T) {
	node := fleet.Instance{}
	node.Name = "win-1"
	node.Status.NodeRef = &v1alpha1.NodeReference{Name: "node-1"}
	never := fleet.Instance{}
	never.Name = "win-2"
	for name, c := range map[string]struct {
		of            fleet.Instance
		status        int // of the kubelet
		out, errOut   string
		command, fail string
	}{
		"the kubelet of a node": {of: node, out: "by the kubelet\n"},
		"the operator, if the kubelet does not answer": {of: node, status: http.StatusBadGateway, out: "by the operator\n",
			errOut:  "The kubelet of node node-1 does not serve logs (502 Bad Gateway: no): the operator reads them over SSH.\n",
			command: "logs win-1 kubelet --tail=5 --since=0s --follow=false"},
		"the operator, of a host that is no node": {of: never, out: "by the operator\n",
			errOut:  "win-2 is not a node yet: the operator reads its logs over SSH.\n",
			command: "logs win-2 kubelet --tail=5 --since=0s --follow=false"},
		"nobody, if a right is missing": {of: node, status: http.StatusForbidden, fail: "logs of node node-1: 403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &operator{}
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			command := &command{Access: cmdutil.New(streams, clock.RealClock{}), operator: o, kubelet: newKubelet(t, c.status), tail: 5}
			err := command.showLogs(t.Context(), c.of, []string{"kubelet"})
			if c.fail == "" && err != nil || c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
				t.Errorf("the error is %v", err)
			}
			if out.String() != c.out || errOut.String() != c.errOut || strings.Join(o.arguments, " ") != c.command {
				t.Errorf("it prints %q and %q, and has asked the operator %q", out.String(), errOut.String(), o.arguments)
			}
		})
	}
}

func TestEventLog_ReadByOperatorOrKubelet(t *testing.T) {
	node, never := fleet.Instance{}, fleet.Instance{}
	node.Name, never.Name = "win-1", "win-2"
	node.Status.NodeRef = &v1alpha1.NodeReference{Name: "node-1"}
	noRight := errors.New(`User "nobody" cannot create resource "pods/exec"`)
	const served = "\n   ProviderName: windows-instance-config-daemon, the last 5\n"
	for name, c := range map[string]struct {
		of            fleet.Instance
		operator      operator
		service       []string
		follow        bool
		status        int // of the kubelet
		out, errOut   string
		command, fail string
	}{
		"the operator": {of: node, out: "by the operator\n", command: "logs win-1 --events --tail=5 --since=0s --follow=false"},
		"the operator, of a service": {of: node, service: []string{"kubelet"}, out: "by the operator\n",
			command: "logs win-1 kubelet --events --tail=5 --since=0s --follow=false"},
		"the kubelet, if the operator cannot be asked": {of: node, operator: operator{err: noRight}, out: served,
			command: "logs win-1 --events --tail=5 --since=0s --follow=false",
			errOut: "The operator cannot read the events (" + noRight.Error() + "). " +
				"The kubelet of node node-1 shows the last events of windows-instance-config-daemon in the log Application, of any age:\n"},
		"the kubelet, if the operator does not reach the host": {of: node, operator: operator{status: 1}, out: "by the operator\n" + served,
			command: "logs win-1 --events --tail=5 --since=0s --follow=false",
			errOut: "The operator cannot read the events (see above). " +
				"The kubelet of node node-1 shows the last events of windows-instance-config-daemon in the log Application, of any age:\n"},
		"nobody, if Windows has no such source": {of: node, operator: operator{err: noRight}, service: []string{"kubelet"},
			command: "logs win-1 kubelet --events --tail=5 --since=0s --follow=false",
			fail:    "the kubelet of node node-1 does not serve events: the node has no event source kubelet"},
		"nobody, if the kubelet does not answer either": {of: node, operator: operator{err: noRight}, status: http.StatusBadGateway,
			command: "logs win-1 --events --tail=5 --since=0s --follow=false", fail: "cannot create resource"},
		"nobody, of a host that is no node": {of: never, operator: operator{err: noRight},
			command: "logs win-2 --events --tail=5 --since=0s --follow=false", fail: "cannot create resource"},
		"nobody, if they are followed": {of: node, operator: operator{err: noRight}, follow: true,
			command: "logs win-1 --events --tail=5 --since=0s --follow=true", fail: "cannot create resource"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			command := &command{Access: cmdutil.New(streams, clock.RealClock{}), operator: &c.operator, kubelet: newKubelet(t, c.status), events: true,
				tail: 5, follow: c.follow}
			err := command.showLogs(t.Context(), c.of, c.service)
			if c.fail == "" && err != nil || c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
				t.Errorf("the error is %v", err)
			}
			if out.String() != c.out || errOut.String() != c.errOut || strings.Join(c.operator.arguments, " ") != c.command {
				t.Errorf("it prints %q and %q, and has asked the operator %q", out.String(), errOut.String(), c.operator.arguments)
			}
		})
	}
}

func TestLogs_InterruptionEndsFollow(t *testing.T) {
	never := fleet.Instance{}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	command := &command{Access: cmdutil.New(streams, clock.RealClock{}), operator: &operator{}, follow: true}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := command.showLogs(ctx, never, []string{"kubelet"}); err != nil {
		t.Error(err)
	}
}

func TestLogs_ReturnsOperatorExitStatus(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	command := &command{Access: cmdutil.New(streams, clock.RealClock{}), operator: &operator{status: 1}}
	if err := command.showLogs(t.Context(), fleet.Instance{}, nil); !errors.Is(err, podexec.ExitStatus(1)) {
		t.Errorf("the error is %v", err)
	}
}
