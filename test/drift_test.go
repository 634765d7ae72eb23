package test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/controller/nodecondition"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

//
func TestDrift_RepairedByAgent(t *testing.T) {
	controlPlane, clock := parallelCluster(t), clocktesting.NewFakeClock(time.Now())
	pumpClock(t, clock, 4*tenfoldStep)
	r := newInstalledRig(t, testenv.Options{Cluster: controlPlane, Hosts: testenv.Hosts(1), Clock: clock})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	machine := r.Host("instance-1").Machine()
	windows := machine.Host()
	connections := machine.Journal().Count(fake.KindConnection)
	uid := getNode(t, r, "instance-1").UID

	const configFile = `C:\k\kubelet.conf`
	content, err := machine.Drive().ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	repaired := func(t *testing.T, step string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		requireNoError(t, r.WaitFor(ctx, "the event about "+step, &eventsv1.Event{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			var list eventsv1.EventList
			err := reader.List(ctx, &list, client.InNamespace(r.Namespace()))
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Reason == "DriftRepaired" && strings.Contains(e.Note, step+" (")
			}), err
		}))
		requireNoError(t, r.WaitFor(ctx, "the host to match its spec again", &corev1.Node{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, types.NamespacedName{Name: "instance-1"}, n)
			condition := nodecondition.Of(n)
			return condition != nil && condition.Status == corev1.ConditionTrue, err
		}))
	}
	// Each drift is reported before the next is caused: a running repair may also correct a later change and report
	// it as another step.
	for name, drift := range map[string]struct {
		step  string
		alter func(t *testing.T) (isReverted func() bool)
	}{
		"a service that was stopped, with those that depend on it": {"StartService containerd", func(t *testing.T) func() bool {
			requireNoError(t, windows.Services.Stop(t.Context(), "containerd"))
			return func() bool {
				for _, name := range []string{"containerd", "kubelet", "hybrid-overlay-node", "kube-proxy"} {
					if findService(t, windows, name).State != host.ServiceRunning {
						return false
					}
				}
				return true
			}
		}},
		"a command line that was changed": {"ConfigureService windows_exporter", func(t *testing.T) func() bool {
			before := findService(t, windows, "windows_exporter")
			altered := before.ServiceConfig
			altered.CommandLine += " --collectors.enabled cpu"
			requireNoError(t, windows.Services.Configure(t.Context(), altered))
			return func() bool {
				now := findService(t, windows, "windows_exporter")
				return now.CommandLine == before.CommandLine && now.RunningCommandLine == before.CommandLine && now.State == host.ServiceRunning
			}
		}},
		"a configuration file that was deleted": {"WriteFile " + configFile, func(t *testing.T) func() bool {
			requireNoError(t, machine.Drive().Remove(configFile))
			return func() bool {
				now, err := machine.Drive().ReadFile(configFile)
				return err == nil && bytes.Equal(now, content) && findService(t, windows, "kubelet").State == host.ServiceRunning
			}
		}},
		"a service that was deleted": {"StartService csi-proxy", func(t *testing.T) func() bool {
			before := findService(t, windows, "csi-proxy")
			requireNoError(t, windows.Services.Stop(t.Context(), "csi-proxy"))
			requireNoError(t, windows.Services.Delete(t.Context(), "csi-proxy"))
			return func() bool {
				now := findService(t, windows, "csi-proxy")
				return now.CommandLine == before.CommandLine && now.State == host.ServiceRunning
			}
		}},
	} {
		t.Run(name+" is put back, and reported", func(t *testing.T) {
			start := clock.Now()
			isReverted := drift.alter(t)
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			if err := machine.WaitFor(ctx, func(*fake.Machine) bool { return isReverted() }); err != nil {
				t.Fatal(err)
			}
			// The full check runs once a minute, and the agent repairs drift immediately.
			if elapsed := clock.Since(start); elapsed > timeouts.DriftCheckInterval+timeouts.ServiceStartTimeout {
				t.Errorf("it took %s", elapsed)
			}
			repaired(t, drift.step)
		})
	}
	//
	t.Run("kube-proxy that dies again and again is started by Windows each time, also while the agent is away", func(t *testing.T) {
		requireNoError(t, windows.Services.Stop(t.Context(), nodespec.ServiceAgent))
		for range 4 {
			before, start := findService(t, windows, nodespec.ServiceKubeProxy), clock.Now()
			requireNoError(t, machine.CrashService(nodespec.ServiceKubeProxy, 255))
			runs := func(*fake.Machine) bool {
				now := findService(t, windows, nodespec.ServiceKubeProxy)
				return now.State == host.ServiceRunning && now.PID != before.PID && now.CommandLine == before.CommandLine
			}
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			requireNoError(t, machine.WaitFor(ctx, runs))
			cancel()
			if elapsed := clock.Since(start); elapsed < 10*time.Second {
				t.Errorf("it took %s: that was not the service manager, which waits for its delay", elapsed)
			}
		}
		if findService(t, windows, nodespec.ServiceAgent).State == host.ServiceRunning {
			t.Error("the agent was there")
		}
		requireNoError(t, windows.Services.Start(t.Context(), nodespec.ServiceAgent))
	})
	t.Run("without the operator, and the node is the same and Ready", func(t *testing.T) {
		if n := machine.Journal().Count(fake.KindConnection); n != connections {
			t.Errorf("%d connections were made", n-connections)
		}
		waitForHeartbeat(t, r, "instance-1")
		waitUntilReady(t, r)
		if n := getNode(t, r, "instance-1"); n.UID != uid || !isNodeReady(n) {
			t.Errorf("the node is %+v", n.Status.Conditions)
		}
	})
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// findService returns a service of a host, or the zero value if the service does not exist.
func findService(t *testing.T, windows host.Host, name string) host.Service {
	t.Helper()
	found, err := windows.Services.Query(context.WithoutCancel(t.Context()), name)
	requireNoError(t, err)
	if len(found) == 0 {
		return host.Service{}
	}
	return found[0]
}

//
func TestDrift_AgentServiceRestored(t *testing.T) {
	controlPlane, clock := parallelCluster(t), clocktesting.NewFakeClock(time.Now())
	pumpClock(t, clock, 4*tenfoldStep)
	r := newInstalledRig(t, testenv.Options{Cluster: controlPlane, Hosts: testenv.Hosts(1), Clock: clock})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	machine := r.Host("instance-1").Machine()
	windows, uid := machine.Host(), getNode(t, r, "instance-1").UID
	intended := findService(t, windows, nodespec.ServiceAgent).CommandLine
	for name, change := range map[string]func(t *testing.T){
		"a stopped agent": func(t *testing.T) { requireNoError(t, windows.Services.Stop(t.Context(), nodespec.ServiceAgent)) },
		"a deleted agent": func(t *testing.T) {
			requireNoError(t, windows.Services.Stop(t.Context(), nodespec.ServiceAgent))
			requireNoError(t, windows.Services.Delete(t.Context(), nodespec.ServiceAgent))
		},
	} {
		t.Run(name+" runs again within half an hour, after few connections and without a drain", func(t *testing.T) {
			waitForConfiguration(t, r, "instance-1", corev1.ConditionTrue, "")
			connections, start := machine.Journal().Count(fake.KindConnection), clock.Now()
			change(t)
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			requireNoError(t, machine.WaitFor(ctx, func(*fake.Machine) bool {
				now := findService(t, windows, nodespec.ServiceAgent)
				return now.State == host.ServiceRunning && now.CommandLine == intended
			}))
			if elapsed := clock.Since(start); elapsed > 2*nodecondition.HeartbeatTimeout {
				t.Errorf("it took %s", elapsed)
			}
			waitForConfiguration(t, r, "instance-1", corev1.ConditionTrue, "")
			waitUntilReady(t, r)
			if n := machine.Journal().Count(fake.KindConnection) - connections; n == 0 || n > 3 {
				t.Errorf("%d connections were made", n)
			}
			if n := getNode(t, r, "instance-1"); n.UID != uid || !isNodeReady(n) || n.Spec.Unschedulable {
				t.Errorf("the node is %+v", n)
			}
		})
	}
}
