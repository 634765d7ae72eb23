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
	"github.com/windows-machine-config/wmco/lab/testenv"
)

//
func TestReboot_RequestedRebootDoneOnce(t *testing.T) {
	l := start(t, withoutMachines, testenv.Options{
		Hosts: []testenv.HostOptions{{ShutdownDelay: 2 * time.Second, RebootDuration: 2 * time.Second}, {}}, LinuxNodes: 1,
	})
	log := &errorLog{}
	o := l.startOperator(initial, log.collectErrors)
	l.requireNoError(l.ListHosts(t.Context()))
	l.waitUntilUpgraded(initial, 2, waitTimeout)
	w := l.deployWorkload(4)
	h := l.Host("instance-1")

	for _, c := range []struct {
		name string
		kill bool
	}{{"is done once, safely", false}, {"is done once, when the operator is killed in the middle", true}} {
		t.Run(c.name, func(t *testing.T) {
			l := l.forSubtest(t)
			follow, before, boot := l.watchAvailability(w), bootCount(h), h.Machine().BootID()
			changed := len(h.Machine().Journal().Entries(isServiceConfiguration))
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "instance-1"}}
			l.setAnnotation(node, "windowsmachineconfig.openshift.io/reboot-required", "patches")
			if c.kill {
				l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
					return h.Machine().WaitFor(ctx, func(m *fake.Machine) bool { return !m.IsRunning() })
				})
				o.Kill()
				o = l.startOperator(initial)
			}
			l.awaitCondition("the node to be as before", &corev1.Node{},
				func(ctx context.Context, reader client.Reader) (bool, error) {
					n := &corev1.Node{}
					err := reader.Get(ctx, client.ObjectKeyFromObject(node), n)
					_, rebootRequired := n.Annotations["windowsmachineconfig.openshift.io/reboot-required"]
					return !rebootRequired && h.Machine().BootID() != boot && isInService(n) && n.Status.NodeInfo.BootID == h.Machine().BootID(),
						client.IgnoreNotFound(err)
				})
			l.waitUntilUpgraded(initial, 2, waitTimeout)
			w.waitForPods(4)
			follow.checkBudget(1, 3)
			if n := bootCount(h) - before; n != 1 {
				t.Errorf("the host was started %d times", n)
			}
			if n := len(h.Machine().Journal().Entries(isServiceConfiguration)) - changed; n > 0 {
				t.Errorf("the host was configured again: %d services", n)
			}
			l.waitForIdle()
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

func (e *errorLog) collectErrors(config *operator.Config) {
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

// isServiceConfiguration reports whether a journal entry is about the configuration of a service.
func isServiceConfiguration(e fake.Entry) bool {
	return e.Kind == fake.KindService && len(e.Detail) > 10 && e.Detail[:10] == "configure "
}
