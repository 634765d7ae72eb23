package instance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// supportRecheck is how often a host that is not supported is asked again: it may have been updated.
const supportRecheck = 10 * time.Minute

// untouched begins what is told of a host that is refused before it is configured. The agent has its own folder in C:\k, and so closes C:\k
// with its first look at the host.
const untouched = `The host is left as it is, but that only administrators can use C:\k until it is given back. `

// claimPoll is how soon a claim is looked at again that waits for another to be withdrawn.
const claimPoll = time.Second

// inspect brings the agent and asks it what the host is, once for each connection.
func (r *Reconciler) inspect(ctx context.Context, s *scope) *obstacle {
	if s.session.facts == nil {
		if o := s.askFacts(ctx); o != nil {
			return s.answersWhileRestarting(o)
		}
	}
	facts := s.session.facts
	if o := s.awaitRestart(facts); o != nil {
		return o
	}
	s.instance.Status.Host = hostStatus(facts)
	return nil
}

func (s *scope) askFacts(ctx context.Context) *obstacle {
	s.progress(ctx, "Inspect", 0, 0, "")
	agent, err := s.agentFile()
	if err != nil {
		return payloadObstacle(err)
	}
	if s.session.agent, err = s.bringAgent(ctx, agent); err != nil {
		return s.hostFailed(v1alpha1.ConditionReachable, err)
	}
	line, err := s.run(ctx, verb.Facts, s.factsArguments()...)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionReachable, err)
	}
	s.session.agent = nodespec.AgentPath(agent.SHA256) // one that has just landed has moved to its own folder
	s.learn(line.Result.Facts)
	return nil
}

// learn keeps what the host has told.
func (s *scope) learn(facts *plan.Facts) {
	s.session.facts, s.session.unanswered = facts, false
	if facts.Fallback != "" {
		s.session.fallback = facts.Fallback
	}
}

func hostStatus(facts *plan.Facts) *v1alpha1.HostStatus {
	system := facts.System
	return &v1alpha1.HostStatus{
		Name: system.HostName, Product: system.Product, Build: fmt.Sprintf("%s.%d", system.Version, system.Revision),
		MachineID: system.MachineID, BootID: system.BootID, Addresses: system.Addresses,
	}
}

// checkSupport refuses a host that cannot be a node of this cluster before it is changed.
func (r *Reconciler) checkSupport(_ context.Context, s *scope) *obstacle {
	decision := r.Line.SupportHost(s.session.facts.System, s.cluster)
	if decision.Allowed {
		s.pass(v1alpha1.ConditionSupported, decision.Message)
		return nil
	}
	return &obstacle{
		condition: v1alpha1.ConditionSupported, reason: decision.Reason, outcome: needsAdministrator, after: supportRecheck,
		message: decision.Message, next: untouched + "Use a supported Windows version and network, or take the host out of its source.",
	}
}

// claimName decides the node's name and makes sure that it belongs to nobody else. The claim is written before it is checked, so that of
// two instances that claim one name at the same time at least one sees the other.
func (r *Reconciler) claimName(ctx context.Context, s *scope) *obstacle {
	name, o := s.expectedNodeName(ctx)
	if o != nil {
		return o
	}
	if s.nodeName() == name && s.instance.Status.NodeRef.Confirmed {
		return nil
	}
	if o := s.refuseRename(ctx, name); o != nil {
		return o
	}
	if s.nodeName() != name {
		s.instance.Status.NodeRef = &v1alpha1.NodeReference{Name: name}
		if err := s.patchStatus(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionJoined, "claim the node name", err)
		}
	}
	decision, err := s.checkClaim(ctx, name)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "check the node name", err)
	}
	if decision.Allowed {
		s.instance.Status.NodeRef.Confirmed = true
		if err := s.patchStatus(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionJoined, "confirm the node name", err)
		}
		return nil
	}
	if decision.Passes {
		return &obstacle{
			condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaiting, outcome: wait, keepsTurn: true, after: claimPoll,
			message: decision.Message, next: "The operator looks again in a second.",
		}
	}
	s.instance.Status.NodeRef = nil
	r.Hosts.Close(s.instance.Name)
	return &obstacle{
		condition: v1alpha1.ConditionJoined, reason: decision.Reason, message: decision.Message,
		next: untouched + "Give the host a name of its own, or take one of the two out of its source.",
	}
}

// refuseRename stops at a host that is a node and calls itself otherwise since. Its Node stays bound to it: under another name the host would
// be a second node, and nobody would drain and delete the first.
func (s *scope) refuseRename(ctx context.Context, name string) *obstacle {
	ref := s.instance.Status.NodeRef
	if ref == nil || !ref.Confirmed {
		return nil
	}
	if ref.UID == "" { // the kubelet may have registered it, and nobody has noted that yet
		node, err := s.liveNode(ctx, ref.Name)
		if err != nil {
			return apiObstacle(v1alpha1.ConditionJoined, "read the Node", err)
		}
		if node == nil || !unproven(node) {
			return nil
		}
	}
	s.session.facts = nil // the next attempt asks the host again
	return &obstacle{
		condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonNameConflict, outcome: needsAdministrator, after: supportRecheck,
		message: fmt.Sprintf("The host is Node %s, and calls itself %s now. A host stays the node that it is: no certificate is issued for another name.", ref.Name, name),
		next:    fmt.Sprintf("Nothing on the host is changed. Give it its name %s back, or take it out of its source and add it again once its Node is gone.", ref.Name),
	}
}

// expectedNodeName is the lower-case form of the name that the host has or is to be given, or by which the cloud knows it.
func (s *scope) expectedNodeName(ctx context.Context) (string, *obstacle) {
	if name := s.keptNodeName(); name != "" {
		return name, nil
	}
	if nodename.GivenByCloud(s.cluster.Platform) {
		return s.cloudNodeName(ctx)
	}
	hostName := s.instance.Spec.HostName
	if hostName == "" {
		hostName = s.session.facts.System.HostName
	}
	name, err := nodename.OfHost(hostName)
	if err != nil {
		return "", &obstacle{
			condition: v1alpha1.ConditionSupported, reason: v1alpha1.ReasonHostNameInvalid, message: err.Error(),
			next: "Rename the Windows host; the operator then goes on by itself.",
		}
	}
	return name, nil
}

func (s *scope) checkClaim(ctx context.Context, name string) (policy.Decision, error) {
	claim := nodename.Claim{Instance: *s.instance, NodeName: name, Cluster: s.cluster}
	node := &corev1.Node{}
	switch err := s.Live.Get(ctx, types.NamespacedName{Name: name}, node); {
	case err == nil:
		claim.Node = node
	case !apierrors.IsNotFound(err):
		return policy.Decision{}, fmt.Errorf("read Node %s: %w", name, err)
	}
	var instances v1alpha1.WindowsInstanceList
	if err := s.Live.List(ctx, &instances, client.InNamespace(s.Namespace)); err != nil {
		return policy.Decision{}, fmt.Errorf("list WindowsInstances: %w", err)
	}
	claim.Others = instances.Items
	var err error
	if claim.Machines, err = s.machines(ctx); err != nil {
		return policy.Decision{}, err
	}
	if err := s.proveOlderNode(ctx, &claim); err != nil {
		return policy.Decision{}, err
	}
	return nodename.Grant(claim), nil
}
