package gather

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/gather/page"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// operator is a fake of the operator's command.
type operator func(request podexec.CollectRequest, streams podexec.Streams) (int, error)

func (o operator) Run(_ context.Context, arguments []string, streams podexec.Streams) (int, error) {
	var request podexec.CollectRequest
	if strings.Join(arguments, " ") != "collect --host-timeout=20s" {
		return 0, errors.New("it does not know " + strings.Join(arguments, " "))
	}
	if err := json.NewDecoder(streams.In).Decode(&request); err != nil {
		return 0, err
	}
	return o(request, streams)
}

func newFakeOperator(text string, status int, err error) operator {
	return func(_ podexec.CollectRequest, streams podexec.Streams) (int, error) {
		_, _ = io.WriteString(streams.Out, text)
		return status, err
	}
}

// gatherHosts collects two hosts, and returns the files, the gaps, and the files shown in the page.
func gatherHosts(t *testing.T, o operator) (files map[string]string, gaps []string, shown []string) {
	t.Helper()
	into := memorySink{}
	g := &gatherer{collection: &collection{sink: into}, timeout: 20 * time.Second}
	hosts := map[string]*page.Host{"win-1": {}, "win-2": {}}
	g.collectOverSSH(t.Context(), o, []podexec.CollectedHost{{Name: "win-1", Logs: true}, {Name: "win-2"}}, hosts)
	return into, g.listGaps(), hosts["win-1"].Files
}

// memorySink keeps files in memory.
type memorySink map[string]string

func (m memorySink) addFile(name string, content []byte) error { m[name] = string(content); return nil }
func (memorySink) finishOutput() error                         { return nil }
func (memorySink) discardOutput()                              {}

func TestGather_WritesOperatorReportsOfHosts(t *testing.T) {
	o := operator(func(request podexec.CollectRequest, streams podexec.Streams) (int, error) {
		if diff := cmp.Diff([]podexec.CollectedHost{{Name: "win-1", Logs: true}, {Name: "win-2"}}, request.Hosts); diff != "" {
			t.Error(diff)
		}
		out := json.NewEncoder(streams.Out)
		return 0, errors.Join(
			out.Encode(podexec.CollectReport{Name: "win-2", Error: "host 10.0.0.2: no TCP connection", Plan: "win-2: not known\n"}),
			out.Encode(podexec.CollectReport{Name: "../../win-3", Found: []byte(`{}`)}), // an unrequested host
			out.Encode(podexec.CollectReport{Name: "win-1", Found: []byte(`{"facts":1}`), Gaps: []string{"logs: no folder"},
				Plan: "win-1: no change\n", Runs: "apply\n",
				Logs: map[string][]byte{"kubelet": []byte("one\n"), "../x": []byte("two\n")}}))
	})
	files, gaps, shown := gatherHosts(t, o)
	if diff := cmp.Diff(map[string]string{"hosts/win-1/host.json": "{\n  \"facts\": 1\n}", "hosts/win-1/logs/kubelet.log": "one\n",
		"hosts/win-1/logs/.._x.log": "two\n",
		"hosts/win-1/plan.txt":      "win-1: no change\n", "hosts/win-1/last-commands.txt": "apply\n", "hosts/win-2/plan.txt": "win-2: not known\n"}, files); diff != "" {
		t.Errorf("the files are (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"hosts/win-1/over SSH: logs: no folder", "hosts/win-2/host.json: host 10.0.0.2: no TCP connection"}, gaps); diff != "" {
		t.Errorf("what lacks is (-want +got):\n%s", diff)
	}
	if len(shown) != 5 {
		t.Errorf("the page shows %v", shown)
	}
}

func TestGather_ContinuesWithoutOperatorReports(t *testing.T) {
	const (
		all    = "data that the operator reads from hosts over SSH: "
		noPlan = "hosts/win-1/plan.txt: the operator is older than this program and does not create plans. See: kubectl windows plan"
	)
	for name, c := range map[string]struct {
		o    operator
		gaps []string
	}{
		"no operator runs": {newFakeOperator("", 0, errors.New("no pod of the operator is ready")), []string{all + "no pod of the operator is ready"}},
		"it has failed": {func(_ podexec.CollectRequest, streams podexec.Streams) (int, error) {
			_, err := io.WriteString(streams.ErrOut, "wmco: no key\n")
			return 1, err
		}, []string{all + "wmco: no key"}},
		"it says what is no report": {newFakeOperator("warning: something\n", 0, nil), []string{all + "invalid character 'w' looking for beginning of value"}},
		"it is cut off": {newFakeOperator(`{"name":"win-1"}`, 0, errors.New("the connection was lost")),
			[]string{all + "the connection was lost. No reports of win-2", noPlan}},
		"it leaves a host out": {newFakeOperator(`{"name":"win-1"}`, 0, nil), []string{noPlan, "hosts/win-2/host.json: the operator has reported nothing about the host"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, gaps, _ := gatherHosts(t, c.o)
			if diff := cmp.Diff(c.gaps, gaps); diff != "" || len(files) > 0 {
				t.Errorf("what lacks is (-want +got):\n%s\nthe files are %v", diff, files)
			}
		})
	}
}
