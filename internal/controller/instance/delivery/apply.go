// Package delivery brings a host to a NodeSpec: it sends the spec and the missing part of the payload, and has the
// agent apply it. A node in service first waits for its turn.
package delivery

import (
	"context"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/event"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/controller/instance/turn"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// Delivery brings hosts to NodeSpecs.
type Delivery struct {
	Link    *link.Link
	Turn    *turn.Turn
	Status  status.Writer
	Events  event.Recorder
	Payload *payload.Payload
}

// Apply has the agent bring the host to the spec. The same spec is not applied twice over one connection, unless the
// agent left steps undone.
func (d *Delivery) Apply(ctx context.Context, s *scope.Scope, spec nodespec.NodeSpec) *obstacle.Obstacle {
	digest := spec.Digest()
	if s.Session.Applied == digest && len(s.Session.Left.Steps) == 0 && !spec.HasCertificate() {
		return nil
	}
	arguments, o := d.send(ctx, s, spec)
	if o != nil {
		return o
	}
	if o := d.Turn.Pass(ctx, s, spec, arguments); o != nil {
		return o
	}
	// What was applied last to its end is what a node in service was proven with.
	if before := s.Session.Facts.Applied; before != "" && before != digest && s.Instance.Status.NodeRef.UID != "" {
		arguments = append(slices.Clip(arguments), "--fallback", "sha256:"+before)
	}
	s.Session.Checked = false
	if s.Session.Spec != digest {
		s.Session.Waiting = ""
	}
	// From here on the host may be neither what it was nor what it is to be, also when the cluster changes its mind.
	if err := d.ForgetDigest(ctx, s); err != nil {
		return obstacle.API(v1alpha1.ConditionInstalled, "note that the host is being changed", err)
	}
	line, err := d.Link.Run(ctx, s, verb.Apply, arguments...)
	if err != nil {
		s.Session.Whole = true
		return d.Link.Failed(s, v1alpha1.ConditionInstalled, err)
	}
	if line.Result != nil && line.Result.NoFallback != "" {
		d.Turn.WarnNoFallback(s, line.Result.NoFallback)
	}
	s.Session.Spec, s.Session.Whole = digest, false
	if line.Result != nil && line.Result.Facts != nil {
		d.Link.Learn(s, line.Result.Facts)
	}
	if line.Type == verb.TypeRebooting {
		d.Events.Emit(event.HostRestarts(s.Instance))
		return d.Link.BeginRestart(s)
	}
	s.Session.Applied, s.Session.Left = digest, *line.Result.Plan
	return nil
}

// ForgetDigest withdraws the statement that the host matches its spec: until it is verified again, it is not left
// alone.
func (d *Delivery) ForgetDigest(ctx context.Context, s *scope.Scope) error {
	if s.Instance.Status.SpecDigest == "" {
		return nil
	}
	s.Instance.Status.SpecDigest = ""
	return d.Status.Patch(ctx, s)
}
