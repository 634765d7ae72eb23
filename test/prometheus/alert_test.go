package prometheus

import (
	"context"
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

//
func TestPrometheus_ShowsNodesAndAlerts(t *testing.T) {
	l := start(t, testenv.Options{Hosts: testenv.Hosts(3), ControlPlane: cluster.Options{Platform: "Azure", ExternalSigner: true}},
		monitored...)
	t.Run("Prometheus scrapes each node, its kubelet, and the operator", func(t *testing.T) {
		l := l.forSubtest(t)
		l.waitUntil("five targets to be up", func(ctx context.Context) (bool, error) {
			up, err := l.runQuery(ctx, "up == 1")
			return up.countLabel("job", monitoring.Name) == 2 && up.countLabel("job", "kubelet") == 2 && up.countLabel("job", v1alpha1.OperatorName) == 1 &&
				len(up) == 5 && up.countLabel("node", "instance-1") == 2 && up.countLabel("node", "instance-2") == 2, err
		})
	})
	t.Run("the console's figures of each node are there", func(t *testing.T) {
		l := l.forSubtest(t)
		for _, expr := range []string{
			`instance:node_cpu_utilisation:rate1m > 0 < 1`,   //nolint:misspell // others have chosen the name
			`instance:node_memory_utilisation:ratio > 0 < 1`, //nolint:misspell // others have chosen the name
			`1 - node_filesystem_avail_bytes{device="/C:"} / node_filesystem_size_bytes{device="/C:"} > 0 < 1`,
			`rate(node_network_receive_bytes_total[1m]) > 0`,
			`node_boot_time_seconds < time()`,
		} {
			l.waitUntil(expr+" of both nodes", func(ctx context.Context) (bool, error) {
				found, err := l.runQuery(ctx, expr)
				return found.countLabel("instance", "instance-1") == 1 && found.countLabel("instance", "instance-2") == 1 && len(found) == 2, err
			})
		}
	})
	for _, s := range statesOfHosts {
		t.Run(s.name, func(t *testing.T) { s.checkAlerts(l.forSubtest(t)) })
	}
}

// The clocks of hosts and operator run faster than Prometheus' clock here: failed operations are retried, and an
// agent reports repeated repairs at increasing intervals.
func TestPrometheus_AlertsAboutNodeChanges(t *testing.T) {
	fast := e2e.FastClock(t)
	l := start(t, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1, Clock: fast}, monitored...)
	l.fast = fast
	for _, s := range statesOfChanges {
		t.Run(s.name, func(t *testing.T) { s.checkAlerts(l.forSubtest(t)) })
	}
}

func TestAlerts_EachHasState(t *testing.T) {
	var shown, all []string
	for _, s := range slices.Concat(statesOfHosts, statesOfChanges) {
		shown = append(shown, s.alertNames...)
	}
	for _, a := range monitoring.Alerts() {
		all = append(all, a.Name)
	}
	slices.Sort(shown)
	slices.Sort(all)
	if !slices.Equal(shown, all) {
		t.Errorf("there are states for %v, and the alerts %v", shown, all)
	}
}
