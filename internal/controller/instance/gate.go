package instance

import (
	"context"
	"slices"
	"sync"
	"time"

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
	if s.instance.Status.SpecDigest == "" || node == nil || !s.released(node) {
		return nil
	}
	line, err := s.run(ctx, verb.Plan, arguments...)
	if err != nil {
		return s.hostObstacle(v1alpha1.ConditionUpToDate, err)
	}
	if line.Result.Plan == nil || !slices.ContainsFunc(line.Result.Plan.Steps, disturbs) {
		return nil
	}
	if holder := s.gateHolder.acquire(s.instance.Name); holder != s.instance.Name {
		return &obstacle{
			condition: v1alpha1.ConditionUpToDate, reason: v1alpha1.ReasonWaiting, waiting: true, after: gatePoll,
			message: "The change interrupts pods, and " + holder + " is being changed: one node at a time.",
			next:    "The node is changed when " + holder + " is Ready again.",
		}
	}
	return s.drainNode(ctx, node)
}

func disturbs(step plan.Step) bool { return step.DisturbsPods || step.Reboots }
