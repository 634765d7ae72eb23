package instance

import (
	"context"
	"errors"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// install brings the host to the spec, as far as the spec is known.
func (r *Reconciler) install(ctx context.Context, s *scope) *obstacle {
	spec, o := s.spec(ctx)
	if o != nil {
		return o
	}
	if o := s.apply(ctx, spec); o != nil {
		return o
	}
	s.pass(v1alpha1.ConditionPrepared, "Windows features and host name are in force.")
	s.pass(v1alpha1.ConditionInstalled, "Payload, configuration and services are on the host.")
	return nil
}

// spec is the desired NodeSpec with what the Node tells, if there is one.
func (s *scope) spec(ctx context.Context) (nodespec.NodeSpec, *obstacle) {
	subnet := ""
	node, err := s.node(ctx)
	if err != nil {
		return nodespec.NodeSpec{}, apiObstacle(v1alpha1.ConditionInstalled, "read the Node", err)
	}
	if node != nil {
		subnet = node.Annotations[v1alpha1.AnnotationPodSubnet]
	}
	spec, err := s.desired(subnet)
	if err != nil {
		return nodespec.NodeSpec{}, specObstacle(err)
	}
	return spec, nil
}

// specObstacle is that no NodeSpec can be made: for want of a program, or of something that the cluster should tell.
func specObstacle(err error) *obstacle {
	o := &obstacle{
		condition: v1alpha1.ConditionInstalled, reason: v1alpha1.ReasonClusterConfigurationInvalid, message: err.Error(), err: err,
		next: "The operator cannot say what the host should be until this is in order.",
	}
	var lacks *nodespec.MissingProgramsError
	if errors.As(err, &lacks) {
		o.reason = v1alpha1.ReasonPayloadUnavailable
		o.next = "The operator needs an image whose payload is whole. The host is left as it is until then."
	}
	return o
}

// apply has the agent bring the host to the spec. The same spec is not applied twice over one connection, unless the agent left steps
// undone.
func (s *scope) apply(ctx context.Context, spec nodespec.NodeSpec) *obstacle {
	digest := spec.Digest()
	if s.session.applied == digest && len(s.session.left.Steps) == 0 && !spec.HasCertificate() {
		return nil
	}
	arguments, o := s.send(ctx, spec)
	if o != nil {
		return o
	}
	if o := s.passGate(ctx, spec, arguments); o != nil {
		return o
	}
	// What was applied last to its end is what a node in service was proven with.
	if before := s.session.facts.Applied; before != "" && before != digest && s.instance.Status.NodeRef.UID != "" {
		arguments = append(slices.Clip(arguments), "--fallback", "sha256:"+before)
	}
	s.session.checked = false
	if s.session.spec != digest {
		s.session.waiting = ""
	}
	// From here on the host may be neither what it was nor what it is to be, also when the cluster changes its mind.
	if err := s.forgetDigest(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionInstalled, "note that the host is being changed", err)
	}
	line, err := s.run(ctx, verb.Apply, arguments...)
	if err != nil {
		s.session.whole = true
		return s.hostFailed(v1alpha1.ConditionInstalled, err)
	}
	s.session.spec, s.session.whole = digest, false
	if line.Result != nil && line.Result.Facts != nil {
		s.learn(line.Result.Facts)
	}
	if line.Type == verb.TypeRebooting {
		s.emit(hostRestarts(s.instance))
		return s.beginRestart()
	}
	s.session.applied, s.session.left = digest, *line.Result.Plan
	return nil
}

// forgetDigest takes back that the host is what its spec says: until it was verified again, it is not left alone.
func (s *scope) forgetDigest(ctx context.Context) error {
	if s.instance.Status.SpecDigest == "" {
		return nil
	}
	s.instance.Status.SpecDigest = ""
	return s.patchStatus(ctx)
}
