package instance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// changingKinds are the jobs that change the host. The second list contains their agent commands.
var changingKinds = []hostjobs.Kind{
	hostjobs.KindApply, hostjobs.KindCommit, hostjobs.KindReboot, hostjobs.KindRenew, hostjobs.KindRollback, hostjobs.KindRestore,
}

var changingCommands = []string{"apply", "commit", "reboot", "renew", "rollback", "remove"}

// trackCommand checks the rules for the start of an agent command, and returns a function for the end of the command.
func (m *model) trackCommand(p *fake.Process) (ends func()) {
	if p.Service != "" || len(p.Args) == 0 || !slices.Contains(changingCommands, p.Args[0]) {
		return func() {}
	}
	m.mu.Lock()
	m.verbs[p] = p.Args[0]
	running := slices.Collect(maps.Values(m.verbs))
	m.mu.Unlock()
	if len(running) > 1 {
		m.addViolation("the changing verbs %q run at once", running)
	}
	m.recordHistory("  the agent begins to %s", p.Args[0])
	m.checkRecorded(p.Args[0])
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.verbs, p)
	}
}

// checkRecorded checks that the API server has the state that must be recorded before a change of the host.
func (m *model) checkRecorded(verb string) {
	instance := &v1alpha1.WindowsInstance{}
	err := m.api.Get(context.Background(), client.ObjectKeyFromObject(listedInstance()), instance)
	if err != nil { // a change of a listed host continues after its instance is deleted
		return
	}
	if instance.Status.HostKey == nil && m.trialNode() == nil {
		m.addViolation("%s runs on a host whose key is not recorded", verb)
	}
	if verb == "renew" {
		return
	}
	if instance.Status.SpecDigest != "" && verb != "commit" && verb != "reboot" {
		m.addViolation("%s runs, and the status says that the host is as wanted", verb)
	}
}

// podServices are the services that pods on a node depend on.
var podServices = []string{nodespec.ServiceContainerd, nodespec.ServiceHybridOverlay, nodespec.ServiceKubeProxy}

// checkDisruption checks that pods have left before an agent command stops the services they need.
func (m *model) checkDisruption(o fake.Operation) error {
	stops := o.Method == "Stop" && slices.Contains(podServices, o.Target) || o.Method == "Reboot"
	if o.Process == nil || o.Process.Service != "" || len(o.Process.Args) == 0 || !slices.Contains(changingCommands, o.Process.Args[0]) || !stops {
		return nil
	}
	if node := m.trialNode(); node != nil && isReadyNode(node) && len(m.listPods()) > 0 {
		m.addViolation("%s does %s %s while there are pods on the Node, which is cordoned: %t", o.Process.Args[0], o.Method, o.Target, node.Spec.Unschedulable)
	}
	return nil
}

func (m *model) addViolation(format string, values ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = append(m.broken, fmt.Sprintf(format, values...))
}

// checkCurrent checks that a job that changes the host was not started for a stale version in the cache. The API
// server is read at most once per second.
func (m *model) checkCurrent(instance *v1alpha1.WindowsInstance) {
	if m.cached == nil || m.clock.Since(m.edited) < maxVersionAge {
		return
	}
	running := m.Jobs.HostFor(m.cached).RunningJob()
	outdated := instance == nil || m.cached.UID != instance.UID || !apiequality.Semantic.DeepEqual(m.cached.Spec, instance.Spec)
	if running != nil && outdated && slices.Contains(changingKinds, running.Key.Kind) {
		m.addViolation("a job of kind %s has begun for a former version of the instance", running.Key.Kind)
	}
}

// checkViolations ends the test if a rule was violated.
func (m *model) checkViolations() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.broken) > 0 {
		m.t.Fatalf("%s\n%s", strings.Join(m.broken, "\n"), strings.Join(m.history, "\n"))
	}
}

// checkDriven checks that a reconcile is pending for an instance that has not reached its desired state.
func (m *model) checkDriven() {
	instance := m.storedInstance()
	if instance == nil || instance.Spec.Paused || m.cached != nil || m.isAsDesired() {
		return
	}
	if m.isStalled() {
		m.addViolation("nothing drives the instance: %s", m.describeInstance())
	}
}
