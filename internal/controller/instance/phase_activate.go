package instance

import (
	"context"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// activatePhase is the phase that activates a verified node.
type activatePhase struct {
	nodes   nodes.Nodes
	events  status.Recorder
	specs   desired.SpecBuilder
	clock   clock.PassiveClock
	version string // of the operator
}

// reconcile activates a verified node, and closes the connection.
func (p activatePhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	node, spec, o := p.awaitReadyNode(ctx, s)
	if o != nil {
		return o
	}
	first := nodeidentity.HasStartupTaint(node)
	if o := p.refreshClock(s); o != nil {
		return o
	}
	proven := "The node passed its checks and accepts pods." + p.reportAdvisoryFailures(s, spec) + p.reportClosedKubeletPort(s, spec.NodeIP)
	err := p.nodes.Activate(ctx, s.Instance, node, s.Key.Hash())
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "remove the start-up taint from the Node", err)
	}
	identity.RecordReported(&s.Instance.Status, spec, s.Host.Facts, p.clock.Now())
	to := &s.Instance.Status
	to.FailedChange = nil
	to.SpecDigest, to.Version, to.PublicKeyHash = spec.Digest(), p.version, s.Key.Hash()
	to.Kubernetes = p.specs.KubernetesFor(s)
	to.ConfigurationDigest = p.specs.ConfigurationDigest(s.Cluster)
	s.MarkTrue(v1alpha1.ConditionReady, proven)
	s.MarkTrue(v1alpha1.ConditionUpToDate, "The host matches the configuration of operator version "+p.version+".")
	if first {
		p.events.Emit(status.NodeReadyEvent(s.Instance, node, p.clock.Since(s.Instance.CreationTimestamp.Time)))
		p.events.Emit(status.LegacySetupEvent(s.Instance))
	}
	s.Session.RollbackTarget, s.Session.NoRollbackReason, s.Session.ChangeFailures = "", "", 0
	// The node was verified with the current configuration, so the rollback target is deleted.
	if facts := s.Host.Facts; facts != nil && facts.RollbackTarget != "" {
		s.Host.Commit()
	} else {
		s.Host.Close()
	}
	s.RequestSlotRelease()
	return nil
}

// refreshClock reads the clock of a host again if the clock is wrong, because the last reading may be as old as
// the connection. After a failure, the last reading is kept.
func (p activatePhase) refreshClock(s *scope.Scope) *result.Result {
	if support.ClockAdvice(s.Session.Clock) == "" || s.Host.ClockRead {
		return nil
	}
	reading, pending, err := s.Host.ReadClock()
	switch {
	case pending != nil:
		return pending
	case err == nil:
		s.Session.Clock = reading
	}
	return nil
}

// awaitReadyNode returns the Node with its NodeSpec, if the Node is Ready and initialized.
func (p activatePhase) awaitReadyNode(ctx context.Context, s *scope.Scope) (*corev1.Node, nodespec.NodeSpec, *result.Result) {
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return nil, nodespec.NodeSpec{}, result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if message := nodes.ExplainNotReady(s, node, s.Host.KubeletStarted()); message != "" {
		o := nodes.AwaitReady(s, node, p.clock.Now(), "the Node to report Ready", message)
		o.StatusDelay = p.nodes.NodeWaitStatusDelay
		return nil, nodespec.NodeSpec{}, o
	}
	spec, o := p.specs.BuildForNode(s, node)
	if o == nil && nodeidentity.IsUninitialized(node) {
		o = notInitialized(node, spec, s.Cluster.Platform)
	}
	return node, spec, o
}

// notInitialized returns the wait for the cloud controller manager, which sets the labels used for scheduling. Until
// then, a taint keeps pods away. An event of the Node ends the wait.
func notInitialized(node *corev1.Node, spec nodespec.NodeSpec, platform string) *result.Result {
	onHost := slices.ContainsFunc(spec.Services, func(service nodespec.Service) bool {
		return service.Name == nodespec.ServiceCloudNodeManager
	})
	who, where := "the cloud controller manager",
		"check the pods in namespace openshift-cloud-controller-manager, and that the platform has a virtual machine for the host."
	if nodename.HasGuestNameLookup(platform) {
		where += " On vSphere, VMware Tools must report " + node.Name + " as the DNS name of the guest, in the same lower-case letters."
	}
	if onHost {
		who, where = "the cloud controller manager on the host, service "+nodespec.ServiceCloudNodeManager+",",
			`check its log in C:\var\log\`+nodespec.ServiceCloudNodeManager+" on the host."
	}
	return &result.Result{
		Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNodeNotInitialized, Outcome: result.Wait, HoldsSlot: true,
		Message: "The node passed its checks, but accepts no pods yet: Node " + node.Name + " has the taint " +
			v1alpha1.TaintUninitialized + " until " + who + " has initialized it.",
		NextAction: "The operator continues when the taint is removed, usually within seconds. Otherwise, " + where,
	}
}

// maxAdviceLength is the maximum size of a check's message in the condition, in bytes. The event has the full
// message.
const maxAdviceLength = 250

// reportAdvisoryFailures emits events for failed advisory checks and a wrong host clock, and returns a text about
// these and known faults of the Windows build. The node works nevertheless, so these are not results.
func (p activatePhase) reportAdvisoryFailures(s *scope.Scope, spec nodespec.NodeSpec) string {
	advice := ""
	if clock := support.ClockAdvice(s.Session.Clock); clock != "" {
		p.events.Emit(status.ClockSkewEvent(s.Instance, clock))
		advice += " But " + clock
	}
	for _, failed := range failedChecks(spec.Checks, s.Host.Verified.Checks, true) {
		p.events.Emit(status.AdvisoryCheckFailedEvent(s.Instance, failed))
		advice += " But " + sanitize.Sentence(sanitize.Shorten(failed, maxAdviceLength))
	}
	if told := s.Instance.Status.Host; told != nil {
		if fault := support.Advise(told.Build); fault != "" {
			advice += " But " + fault
		}
	}
	return advice
}

// kubeletPort is the port of the kubelet for logs and exec.
const kubeletPort = "10250"

// reportClosedKubeletPort emits an event for a kubelet port that is closed to the operator, and returns a text about
// the port. The node works without the port, so this is not a result.
func (p activatePhase) reportClosedKubeletPort(s *scope.Scope, nodeIP string) string {
	err := s.Host.KubeletPortError
	if err == nil {
		return ""
	}
	p.events.Emit(status.KubeletPortUnreachableEvent(s.Instance, net.JoinHostPort(nodeIP, kubeletPort), err))
	return " But TCP port " + kubeletPort +
		" of the host is closed: oc logs and oc exec do not reach the pods. Open the port in the network between control plane and host."
}
