package instance

import (
	"context"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/certificates"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/readiness"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/instance/turn"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/text"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// release is the phase that hands a proven node to the scheduler.
type release struct {
	link    *link.Link
	turn    *turn.Turn
	status  status.Writer
	nodes   nodes.Nodes
	events  event.Recorder
	specs   desired.Specs
	clock   clock.PassiveClock
	version string // of the operator
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// mostConflicts is how often a pass looks at its Node again because somebody else has written to it. When a node becomes
// Ready its kubelet and the node lifecycle controller do, too.
const mostConflicts = 3

// run hands a node that was proven to work to the scheduler, and lets the connection go.
func (p release) run(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	node, spec, o := p.ready(ctx, s)
	if o != nil {
		return o
	}
	first := nodeidentity.Unproven(node)
	if support.ClockAdvice(s.Session.Clock) != "" {
		p.link.RefreshClock(ctx, s) // the last reading may be as old as the connection
	}
	proven := "The node passed its checks and takes pods." + p.advise(s) + p.tryLogsPort(ctx, s, spec.NodeIP)
	err := p.nodes.Release(ctx, s.Instance, node, s.Key.Hash())
	for conflicts := 0; apierrors.IsConflict(err) && conflicts < mostConflicts; conflicts++ {
		// What was decided by the Node is decided again, by what it is now.
		again, now, o := p.ready(ctx, s)
		if o != nil {
			return o
		}
		if now.Digest() != spec.Digest() {
			break // with another subnet the host has to be changed before
		}
		node, err = again, p.nodes.Release(ctx, s.Instance, again, s.Key.Hash())
	}
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "take the start-up taint from the Node", err)
	}
	p.settle(ctx, s)
	certificates.Note(&s.Instance.Status, spec, s.Session.Facts, p.clock.Now())
	status := &s.Instance.Status
	status.FailedChange = nil
	status.SpecDigest, status.Version, status.PublicKeyHash = spec.Digest(), p.version, s.Key.Hash()
	status.Configuration = p.specs.Configuration(s.Cluster)
	s.Pass(v1alpha1.ConditionReady, proven)
	s.Pass(v1alpha1.ConditionUpToDate, "The host is what version "+p.version+" of the operator wants it to be.")
	if first {
		p.events.Emit(event.NodeReady(s.Instance, node, p.clock.Since(s.Instance.CreationTimestamp.Time)))
		p.events.Emit(event.LegacySetup(s.Instance))
	}
	s.Session.Fallback, s.Session.NoFallback, s.Session.ChangeFailures = "", "", 0
	p.link.Close(s)
	// Write the status before the gate is left: canarySoak of the next node counts from the time that it has.
	status.ObservedGeneration = s.Instance.Generation
	if err := p.status.Show(ctx, s, nil); err != nil {
		return obstacle.API(v1alpha1.ConditionUpToDate, "write down that the node is up to date", err)
	}
	return p.turn.Leave(ctx, s)
}

// ready waits for a moment until the Node is Ready and initialized, and returns it with the NodeSpec that belongs to it.
func (p release) ready(ctx context.Context, s *scope.Scope) (*corev1.Node, nodespec.NodeSpec, *obstacle.Obstacle) {
	node, err := p.nodes.Await(ctx, s.Waiter(), func(node *corev1.Node) bool {
		return readiness.NotReady(s, node, s.Session.KubeletStarted) == "" && !nodeidentity.Uninitialized(node)
	})
	if err != nil {
		return nil, nodespec.NodeSpec{}, obstacle.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if message := readiness.NotReady(s, node, s.Session.KubeletStarted); message != "" {
		return nil, nodespec.NodeSpec{}, readiness.Await(s, node, p.clock.Now(), "the Node to report Ready", message)
	}
	spec, o := p.specs.With(s, node)
	if o == nil && nodeidentity.Uninitialized(node) {
		o = notInitialized(node, spec, s.Cluster.Platform)
	}
	return node, spec, o
}

// notInitialized waits for the cloud controller manager: its taint keeps pods away, and it brings the labels by which
// pods are placed. An event of the Node ends the wait.
func notInitialized(node *corev1.Node, spec nodespec.NodeSpec, platform string) *obstacle.Obstacle {
	onHost := slices.ContainsFunc(spec.Services, func(service nodespec.Service) bool {
		return service.Name == nodespec.ServiceCloudNodeManager
	})
	who, where := "the cloud controller manager",
		"look at the pods in namespace openshift-cloud-controller-manager, and whether the platform has the host as a virtual machine."
	if nodename.FoundByGuestName(platform) {
		where += " On vSphere, VMware Tools must report " + node.Name + " as the DNS name of the guest, in the same lower-case letters."
	}
	if onHost {
		who, where = "the cloud controller manager's part on the host, the service "+nodespec.ServiceCloudNodeManager+",",
			`look at its log in C:\var\log\`+nodespec.ServiceCloudNodeManager+" on the host."
	}
	return &obstacle.Obstacle{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotInitialized, Outcome: obstacle.Wait, KeepsTurn: true,
		Message: "The node passed its checks, but takes no pods yet: Node " + node.Name + " has the taint " +
			v1alpha1.TaintUninitialized + " until " + who + " has initialized it.",
		Next: "The operator goes on when the taint is gone, which takes seconds. If it lasts, " + where,
	}
}

// settle has the agent let go of what the host was before: the node was proven with what it is now. If that fails, it
// is done with the next change.
func (p release) settle(ctx context.Context, s *scope.Scope) {
	if s.Session.Facts == nil || s.Session.Facts.Fallback == "" {
		return
	}
	if _, err := p.link.Run(ctx, s, verb.Settle); err != nil {
		log.FromContext(ctx).Info("the files of the previous NodeSpec stay on the host until the next change", "reason", err.Error())
	}
}

// longestAdvice is how much of a check's message the condition shows, in bytes; the event has all of it.
const longestAdvice = 250

// advise says which advisory checks have failed, whether the host's clock is wrong, and what is known of its build. The
// node works without, so they are no obstacle.
func (p release) advise(s *scope.Scope) string {
	advice := ""
	if clock := support.ClockAdvice(s.Session.Clock); clock != "" {
		p.events.Emit(event.ClockOff(s.Instance, clock))
		advice += " But " + clock
	}
	for _, failed := range s.Session.Advice {
		p.events.Emit(event.AdviceGiven(s.Instance, failed))
		advice += " But " + text.Sentence(text.Shortened(failed, longestAdvice))
	}
	if told := s.Instance.Status.Host; told != nil {
		if fault := support.Advise(told.Build); fault != "" {
			advice += " But " + fault
		}
	}
	return advice
}

// kubeletPort is where the API server reaches the kubelet for logs and exec.
const (
	kubeletPort  = "10250"
	kubeletLimit = 5 * time.Second
)

// tryLogsPort says when the kubelet's port is closed to others. The node works without it, so it is advice and no
// obstacle.
func (p release) tryLogsPort(ctx context.Context, s *scope.Scope, nodeIP string) string {
	ctx, cancel := context.WithTimeout(ctx, kubeletLimit)
	defer cancel()
	address := net.JoinHostPort(nodeIP, kubeletPort)
	connection, err := p.dial(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close() // nothing was sent
		return ""
	}
	p.events.Emit(event.LogsPortClosed(s.Instance, address, err))
	return " But TCP port " + kubeletPort +
		" of the host is closed: oc logs and oc exec do not reach its pods. Open it in the network between control plane and host."
}
