package instance

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
)

// registerLimit is how long a started kubelet may take to register its node before it counts as a failure.
const registerLimit = 5 * time.Minute

// join gets the node's services their certificates and binds the Node that the kubelet registers.
func (r *Reconciler) join(ctx context.Context, s *scope) *obstacle {
	if slices.Contains(s.session.left.Needs, nodespec.NeedCertificate) {
		if o := s.tellLostCertificate(ctx); o != nil {
			return o
		}
	}
	if len(neededCertificates(s.session.left)) > 0 {
		if o := s.mayHaveCertificates(ctx); o != nil {
			return o
		}
		if o := s.issueCertificates(ctx); o != nil {
			return o
		}
	}
	node, o := s.ownNode(ctx)
	if o != nil {
		return o
	}
	if node == nil && s.instance.Status.NodeRef.UID != "" {
		if o := s.registerAgain(ctx); o != nil {
			return o
		}
	}
	if node == nil {
		return s.awaited("the Node "+s.nodeName(), registerLimit, &obstacle{
			condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonNodeNotRegistered, outcome: changeFailed,
			message: "The kubelet runs and has its certificate; Node " + s.nodeName() + " is not registered yet.",
			next:    `If this lasts, look at C:\var\log\kubelet on the host: can it reach ` + s.cluster.APIServerInternalURL + "?",
		})
	}
	if err := s.bindNode(ctx, node); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "label the Node", err)
	}
	s.pass(v1alpha1.ConditionJoined, "The kubelet has its certificate and registered Node "+node.Name+".")
	return nil
}

// mayHaveCertificates tells what keeps certificates from being signed for the name of the instance's node, whether it is registered or not.
func (s *scope) mayHaveCertificates(ctx context.Context) *obstacle {
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "read the Node", err)
	}
	return s.stillNamed(ctx, node)
}

// ownNode is the instance's Node as it is now; nil when there is none, to which nothing is written.
func (s *scope) ownNode(ctx context.Context) (*corev1.Node, *obstacle) {
	node, err := s.node(ctx)
	if err != nil {
		return nil, apiObstacle(v1alpha1.ConditionJoined, "read the Node", err)
	}
	if node == nil {
		return nil, nil
	}
	if o := s.stillNamed(ctx, node); o != nil {
		return nil, o
	}
	return node, nil
}

// stillNamed tells what has come in the way of the name that was granted, with the Node of that name; nil for none. Long after that a Node of
// another machine may have come by it, or its own was deleted and another's kubelet was faster: then nothing is signed for the name and nothing
// is written to that Node.
func (s *scope) stillNamed(ctx context.Context, node *corev1.Node) *obstacle {
	if node != nil && ownership.Bound(s.instance, node) {
		return nil
	}
	claim := nodename.Claim{Instance: *s.instance, NodeName: s.nodeName(), Node: node}
	var instances v1alpha1.WindowsInstanceList
	if err := s.Live.List(ctx, &instances, client.InNamespace(s.Namespace)); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "list WindowsInstances", err)
	}
	claim.Others = instances.Items
	machines, err := s.machines(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "list Machines", err)
	}
	claim.Machines = machines
	if decision := nodename.StillGranted(claim); !decision.Allowed {
		return &obstacle{
			condition: v1alpha1.ConditionJoined, reason: decision.Reason, message: decision.Message,
			next: "Nothing was signed. Give this host or the other a name of its own, or take one of the two out of the cluster.",
		}
	}
	return nil
}

// registerAgain has the kubelet register a Node that was there and was deleted: it does so only when it starts.
func (s *scope) registerAgain(ctx context.Context) *obstacle {
	ref := s.instance.Status.NodeRef
	s.emit(nodeLost(s.instance))
	s.instance.Status.Registration, ref.UID = ref.UID, ""
	if err := s.patchStatus(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "note that the Node was deleted", err)
	}
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	return s.apply(ctx, spec)
}

// tellLostCertificate says that a node which had joined before needs another certificate: it was off for longer than the life of its
// own, or lost the file.
func (s *scope) tellLostCertificate(ctx context.Context) *obstacle {
	if s.instance.Status.NodeRef.UID == "" {
		return nil
	}
	lost := &obstacle{
		phase: "join", condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonCertificateExpired, outcome: wait,
		message: lostCertificate(s.session.facts.Identity.Current),
		next:    "The operator has a new certificate signed for the key that the host has made, and sends it over the pinned connection.",
	}
	s.emit(stopped(s.instance, lost))
	if err := s.show(ctx, lost); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "say that the kubelet's certificate is lost", err)
	}
	return nil
}

func lostCertificate(current *plan.CertificateFacts) string {
	if current == nil {
		return "The kubelet's certificate is no longer on the host."
	}
	return "The kubelet's certificate for " + current.CommonName + " was valid until " + current.NotAfter.UTC().Format(time.RFC3339) + "."
}

// neededCertificates are the names of the identities whose certificates a plan needs; empty for the kubelet's.
func neededCertificates(p plan.Plan) []string {
	var names []string
	for _, need := range p.Needs {
		if name, ok := nodespec.CertificateOf(need); ok {
			names = append(names, name)
		}
	}
	return names
}

// issueCertificates signs the requests that came over the pinned connection, and sends all certificates back with the spec at once.
func (s *scope) issueCertificates(ctx context.Context) *obstacle {
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	issued := spec
	for _, identity := range spec.AllIdentities() {
		if !slices.Contains(neededCertificates(s.session.left), identity.Name) {
			continue
		}
		certificate, o := s.issue(ctx, identity, s.session.facts)
		if o != nil {
			if o.outcome == changeFailed { // the host asks for another identity
				s.session.applied, s.session.facts = "", nil // the next attempt asks the host again
			}
			return o
		}
		issued = issued.WithCertificate(identity.Name, string(certificate))
	}
	if o := s.apply(ctx, issued); o != nil {
		return o
	}
	if left := neededCertificates(s.session.left); len(left) > 0 {
		return s.certificateNotTaken(ctx, left[0])
	}
	return nil
}

// certificateNotTaken is that the agent still needs a certificate which it was sent.
func (s *scope) certificateNotTaken(ctx context.Context, identity string) *obstacle {
	if err := s.deleteRequests(ctx, s); err != nil {
		return apiObstacle(v1alpha1.ConditionJoined, "delete the certificate request", err)
	}
	service := nodespec.Identity{Name: identity}.Service()
	return &obstacle{
		condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonCertificateRequestRefused, outcome: changeFailed,
		message: "The agent did not take the certificate that was signed for its request for " + service + ".",
		next:    "The operator has it signed anew at the next attempt. If this lasts, compare the host's clock with the cluster's.",
	}
}
