package instance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
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
		return nodespec.NodeSpec{}, &obstacle{
			condition: v1alpha1.ConditionInstalled, reason: v1alpha1.ReasonClusterNotRead, message: err.Error(), err: err,
			next: "The operator cannot say what the host should be until this is in order.",
		}
	}
	return spec, nil
}

// apply sends the spec and what the host lacks for it, and lets the agent do the difference. The same spec is not sent twice over one
// connection, unless the agent left steps undone.
func (s *scope) apply(ctx context.Context, spec nodespec.NodeSpec) *obstacle {
	digest := spec.Digest()
	if s.session.applied == digest && len(s.session.left.Steps) == 0 && spec.Identity.Certificate == "" {
		return nil
	}
	arguments, o := s.send(ctx, spec)
	if o != nil {
		return o
	}
	if o := s.passGate(ctx, arguments); o != nil {
		return o
	}
	s.session.checked = false
	// From here on the host may be neither what it was nor what it is to be, also when the cluster changes its mind.
	if err := s.forgetDigest(ctx); err != nil {
		return apiObstacle(v1alpha1.ConditionInstalled, "note that the host is being changed", err)
	}
	line, err := s.run(ctx, verb.Apply, arguments...)
	if err != nil {
		return s.hostObstacle(v1alpha1.ConditionInstalled, err)
	}
	if line.Result != nil && line.Result.Facts != nil {
		s.session.facts = line.Result.Facts
	}
	if line.Type == verb.TypeRebooting {
		s.emit(hostRestarts(s.instance))
		s.session.forgetHost()
		s.Hosts.Close(s.instance.Name)
		return rebootObstacle()
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

// send uploads spec and payload and returns the verb's arguments.
func (s *scope) send(ctx context.Context, spec nodespec.NodeSpec) ([]string, *obstacle) {
	encoded, err := spec.Encode()
	if err != nil {
		return nil, s.hostObstacle(v1alpha1.ConditionInstalled, err)
	}
	sum := sha256.Sum256(encoded)
	specPath := nodespec.InboxSpec(hex.EncodeToString(sum[:]))
	if err := s.connection.Upload(ctx, specPath, int64(len(encoded)), bytes.NewReader(encoded), nil); err != nil {
		return nil, s.hostObstacle(v1alpha1.ConditionInstalled, err)
	}
	arguments := []string{"--spec", specPath}
	lacking := missing(spec, s.session.facts.Payload)
	if len(lacking) == 0 {
		return arguments, nil
	}
	archive, err := s.Packer.Packed(ctx, lacking)
	if err != nil {
		return nil, payloadObstacle(err)
	}
	payloadPath := nodespec.InboxPayload(archive.SHA256)
	if err := s.sendPayload(ctx, payloadPath, archive); err != nil {
		return nil, s.hostObstacle(v1alpha1.ConditionInstalled, err)
	}
	return append(arguments, "--payload", payloadPath), nil
}

// sendPayload uploads the archive, unless an earlier attempt that was cut off afterwards has brought it. The agent checks what is in it.
func (s *scope) sendPayload(ctx context.Context, path string, archive *payload.Archive) error {
	if there, err := s.connection.Has(ctx, path, archive.Size); there || err != nil {
		return err
	}
	s.progress(ctx, "SendPayload", 0, 0, "")
	return s.connection.Upload(ctx, path, archive.Size, archive.Reader(), s.transferProgress(ctx, "SendPayload"))
}

func payloadObstacle(err error) *obstacle {
	return &obstacle{
		condition: v1alpha1.ConditionInstalled, reason: v1alpha1.ReasonPayloadMissing, err: err,
		message: "The operator cannot read its payload: " + err.Error(), next: "The operator's image is damaged or its disk is full.",
	}
}
