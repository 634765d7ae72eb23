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

// changingKinds are the jobs that change the host, and changingVerbs what they have the agent do.
var changingKinds = []hostjobs.Kind{
	hostjobs.KindApply, hostjobs.KindCommit, hostjobs.KindReboot, hostjobs.KindRenew, hostjobs.KindRollback, hostjobs.KindGiveBack,
}

var changingVerbs = []string{"apply", "commit", "reboot", "renew", "rollback", "remove"}

// runsVerb checks the rules that hold when a verb begins. It returns the end of the verb.
func (m *model) runsVerb(p *fake.Process) (ends func()) {
	if p.Service != "" || len(p.Args) == 0 || !slices.Contains(changingVerbs, p.Args[0]) {
		return func() {}
	}
	m.mu.Lock()
	m.verbs[p] = p.Args[0]
	running := slices.Collect(maps.Values(m.verbs))
	m.mu.Unlock()
	if len(running) > 1 {
		m.breaks("the changing verbs %q run at once", running)
	}
	m.says("  the agent begins to %s", p.Args[0])
	m.checkRecorded(p.Args[0])
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.verbs, p)
	}
}

// checkRecorded checks that the API has what must precede a change of the host.
func (m *model) checkRecorded(verb string) {
	instance := &v1alpha1.WindowsInstance{}
	err := m.api.Get(context.Background(), client.ObjectKeyFromObject(listed()), instance)
	if err != nil { // a change of a listed host is not cut off when its instance is deleted
		return
	}
	if instance.Status.HostKey == nil && m.trialNode() == nil {
		m.breaks("%s runs on a host whose key is not recorded", verb)
	}
	if verb == "renew" {
		return
	}
	if instance.Status.SpecDigest != "" && verb != "commit" && verb != "reboot" {
		m.breaks("%s runs, and the status says that the host is as wanted", verb)
	}
}

// podServices are the services without which the pods on a node do not work.
var podServices = []string{nodespec.ServiceContainerd, nodespec.ServiceHybridOverlay, nodespec.ServiceKubeProxy}

// checkDisturbance checks that pods have left before a verb stops what they need.
func (m *model) checkDisturbance(o fake.Operation) error {
	stops := o.Method == "Stop" && slices.Contains(podServices, o.Target) || o.Method == "Reboot"
	if o.Process == nil || o.Process.Service != "" || len(o.Process.Args) == 0 || !slices.Contains(changingVerbs, o.Process.Args[0]) || !stops {
		return nil
	}
	if node := m.trialNode(); node != nil && isReadyNode(node) && len(m.pods()) > 0 {
		m.breaks("%s does %s %s while there are pods on the Node, which is cordoned: %t", o.Process.Args[0], o.Method, o.Target, node.Spec.Unschedulable)
	}
	return nil
}

func (m *model) breaks(format string, values ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = append(m.broken, fmt.Sprintf(format, values...))
}

// checkCurrent checks that a job that changes the host has begun for what the API server has, and not for what the cache still had. The
// API server is not asked again within a second.
func (m *model) checkCurrent(instance *v1alpha1.WindowsInstance) {
	if m.cached == nil || m.clock.Since(m.edited) < recent {
		return
	}
	running := m.Jobs.Of(m.cached).Running()
	outdated := instance == nil || m.cached.UID != instance.UID || !apiequality.Semantic.DeepEqual(m.cached.Spec, instance.Spec)
	if running != nil && outdated && slices.Contains(changingKinds, running.Key.Kind) {
		m.breaks("a job of kind %s has begun for a former version of the instance", running.Key.Kind)
	}
}

// fails ends the test if a rule was broken.
func (m *model) fails() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.broken) > 0 {
		m.t.Fatalf("%s\n%s", strings.Join(m.broken, "\n"), strings.Join(m.history, "\n"))
	}
}

// checkDriven checks that something has an instance reconciled whose host is not as wanted.
func (m *model) checkDriven() {
	instance := m.stored()
	if instance == nil || instance.Spec.Paused || m.cached != nil || m.asWanted() {
		return
	}
	if m.stands() {
		m.breaks("nothing drives the instance: %s", m.describe())
	}
}
