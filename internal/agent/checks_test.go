package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestPodsThatCannotConnect(t *testing.T) {
	t.Parallel()
	refuses := ""
	r := newRig(t, func(o *fake.Options) {
		o.ConnectPod = func(_ context.Context, network, address string) error {
			if network != hnsNetwork || address == refuses {
				return errors.New("connection refused")
			}
			return nil
		}
	}).start()
	r.configure()
	spec := r.full()
	spec.Checks = []nodespec.Check{
		{Name: "PodReachesServices", Kind: nodespec.CheckPodConnects, Target: "172.30.0.1:443", Advisory: true, Hint: "Look at kube-proxy."},
		{Name: "PodReachesDNS", Kind: nodespec.CheckPodConnects, Target: "172.30.0.10:53", Advisory: true, Hint: "Look at the cluster's DNS."},
	}
	r.must(r.Drive().WriteFile(nodespec.SpecPath, mustEncode(t, spec)))
	refuses = "172.30.0.10:53"
	line, _ := r.run("verify")
	if len(line.Result.Checks) != 2 || !line.Result.Checks[0].Passed || line.Result.Checks[1].Passed || !line.Result.Checks[1].Advisory {
		t.Fatalf("%+v", line.Result.Checks)
	}
	if message := line.Result.Checks[0].Message; strings.Contains(message, "Look at") {
		t.Errorf("a check that passes has a hint: %s", message)
	}
	if message := line.Result.Checks[1].Message; !strings.Contains(message, "connection refused. Look at the cluster's DNS.") {
		t.Errorf("got %q", message)
	}
}
