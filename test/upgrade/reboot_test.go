package upgrade

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/rig"
)

//
func TestARebootThatAnAdministratorAsksFor(t *testing.T) {
	l := start(t, withoutMachines, rig.Options{
		Hosts: []rig.HostOptions{{ShutdownDelay: 2 * time.Second, RebootDuration: 2 * time.Second}, {}}, LinuxNodes: 1,
	})
	log := &errorLog{}
	o := l.operate(initial, log.attach)
	l.must(l.ListHosts(t.Context()))
	l.upgraded(initial, 2, limit)
	w := l.deploy(4)
	h := l.Host("instance-1")

	for _, c := range []struct {
		name string
		kill bool
	}{{"is done once, safely", false}, {"is done once, when the operator is killed in the middle", true}} {
		t.Run(c.name, func(t *testing.T) {
			l := l.in(t)
			follow, before, boot := l.watch(w), boots(h), h.Machine().BootID()
			changed := len(h.Machine().Journal().Entries(configured))
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "instance-1"}}
			l.annotate(node, "windowsmachineconfig.openshift.io/reboot-required", "patches")
			if c.kill {
				l.within(limit, func(ctx context.Context) error {
					return h.Machine().WaitFor(ctx, func(m *fake.Machine) bool { return !m.Running() })
				})
				o.Kill()
				o = l.operate(initial)
			}
			l.eventually("the node to be as before", &corev1.Node{},
				func(ctx context.Context, reader client.Reader) (bool, error) {
					n := &corev1.Node{}
					err := reader.Get(ctx, client.ObjectKeyFromObject(node), n)
					_, wanted := n.Annotations["windowsmachineconfig.openshift.io/reboot-required"]
					return !wanted && h.Machine().BootID() != boot && inService(n) && n.Status.NodeInfo.BootID == h.Machine().BootID(),
						client.IgnoreNotFound(err)
				})
			l.upgraded(initial, 2, limit)
			w.runs(4)
			follow.kept(1, 3)
			if n := boots(h) - before; n != 1 {
				t.Errorf("the host was started %d times", n)
			}
			if n := len(h.Machine().Journal().Entries(configured)) - changed; n > 0 {
				t.Errorf("the host was configured again: %d services", n)
			}
			l.silent()
			if errors := log.read(); len(errors) > 0 && !c.kill {
				t.Errorf("the operator has logged errors:\n%s", strings.Join(errors, "\n"))
			}
		})
	}
}

// errorLog collects the errors that an operator logs.
type errorLog struct {
	mu     sync.Mutex
	errors []string
}

func (e *errorLog) attach(config *operator.Config) {
	config.Logger = funcr.New(func(_, text string) {
		if strings.HasPrefix(text, `"level"=`) { // not an error
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.errors = append(e.errors, text)
	}, funcr.Options{})
}

func (e *errorLog) read() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.errors)
}

// configured reports whether a journal entry is about the configuration of a service.
func configured(e fake.Entry) bool {
	return e.Kind == fake.KindService && len(e.Detail) > 10 && e.Detail[:10] == "configure "
}
