package instance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// gatePoll is how often an instance that waits for the gate asks again.
const gatePoll = 10 * time.Second

// gateHolder lets one node that is in service be disturbed at a time.
type gateHolder struct {
	mu   sync.Mutex
	name string
}

// acquire returns who holds the gate: the caller if it was free or its own.
func (g *gateHolder) acquire(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.name == "" {
		g.name = name
	}
	return g.name
}

func (g *gateHolder) release(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.name == name {
		g.name = ""
	}
}

// passGate asks what the agent would do to a node that is in service. What pods do not feel is done at once; what they feel waits until
// no other node is being disturbed, and until the node is drained.
func (s *scope) passGate(ctx context.Context, arguments []string) *obstacle {
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "read the Node", err)
	}
	if node == nil || !s.released(node) {
		return nil
	}
	line, err := s.run(ctx, verb.Plan, arguments...)
	if err != nil {
		return s.hostObstacle(v1alpha1.ConditionUpToDate, err)
	}
	if line.Result.Plan == nil || !slices.ContainsFunc(line.Result.Plan.Steps, disturbs) {
		return nil
	}
	holder, err := s.acquireGate(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionUpToDate, "see which nodes are being changed", err)
	}
	if holder != s.instance.Name {
		return &obstacle{
			condition: v1alpha1.ConditionUpToDate, reason: v1alpha1.ReasonWaiting, waiting: true, after: gatePoll,
			message: "The change interrupts pods, and " + holder + " is being changed: one node at a time.",
			next:    "The node is changed when " + holder + " is Ready again.",
		}
	}
	return s.drainNode(ctx, node)
}

// acquireGate returns who may be disturbed now. Nodes that an operator before this one has made unschedulable count as being disturbed,
// but not those that are left alone since: whoever wanted that has them now, and would hold up all others.
func (s *scope) acquireGate(ctx context.Context) (holder string, err error) {
	var nodes corev1.NodeList
	if err := s.Live.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"}); err != nil {
		return "", fmt.Errorf("list Windows nodes: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		_, cordoned := node.Annotations[v1alpha1.AnnotationCordoned]
		bound := node.Annotations[v1alpha1.AnnotationInstance]
		if !cordoned || bound == "" || bound == s.instance.Name {
			continue
		}
		other := &v1alpha1.WindowsInstance{}
		if err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: bound}, other); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read WindowsInstance %s: %w", bound, err)
		}
		if other.Spec.DesiredState != v1alpha1.DesiredStateUnmanaged {
			return bound, nil
		}
	}
	return s.gateHolder.acquire(s.instance.Name), nil
}

func disturbs(step plan.Step) bool { return step.DisturbsPods || step.Reboots }
