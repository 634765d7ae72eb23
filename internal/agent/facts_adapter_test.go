package agent_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// hnsCheck returns the result of the check of the pod network on a node with two adapters.
func hnsCheck(t *testing.T, change func(*fake.Options)) agentapi.CheckResult {
	t.Helper()
	r := newRig(t, func(o *fake.Options) { o.Addresses = []string{"10.0.0.4", "10.9.0.4"} }, change).start()
	spec := newSpec(r.versions)
	spec.NodeIP = "10.0.0.4"
	steps := r.configureTo(spec, func() bool { return false })
	line, _ := r.run("verify")
	for _, check := range line.Result.Checks {
		if !check.Passed && !check.Advisory {
			t.Errorf("the node would not be released: %s: %s", check.Name, check.Message)
		}
	}
	for _, check := range line.Result.Checks {
		if check.Name == "HNSNetworkReach" {
			return check
		}
	}
	t.Fatalf("there is no such check: %+v, steps %v", line, steps)
	return agentapi.CheckResult{}
}

// HNS itself chooses the adapter for the pod network. L-05
func TestHNSCheck_OtherAdapterReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uses    string
		passed  bool
		message string
	}{
		"the adapter with the node's address":                               {uses: "10.0.0.4", passed: true},
		"HNS does not report the adapter":                                   {passed: true},
		"an address that the host no longer has is no reason":               {uses: "10.0.0.77", passed: true},
		"another adapter is reported with the remedy, and holds up nothing": {uses: "10.9.0.4", message: "Disable the adapter with the address 10.9.0.4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := hnsCheck(t, func(o *fake.Options) { o.ManagementIP = c.uses })
			if got.Passed != c.passed || !got.Advisory || !strings.Contains(got.Message, c.message) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// HNS may also never list the policy: only the advice depends on it.
func TestHNSCheck_MissingHostRouteReported(t *testing.T) {
	t.Parallel()
	got := hnsCheck(t, func(o *fake.Options) { o.NoHostRoute = true })
	if got.Passed || !got.Advisory || !strings.Contains(got.Message, "HostRoute") || !strings.Contains(got.Message, "restart the host") {
		t.Errorf("got %+v", got)
	}
}
