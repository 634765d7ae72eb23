package hosttest

import (
	"context"
	"errors"

	"github.com/windows-machine-config/wmco/internal/host"
)

type sandboxesCalls struct {
	of host.Sandboxes
	*calls
}

func (w sandboxesCalls) List(ctx context.Context, endpoint string) ([]host.Sandbox, error) {
	w.recordCall("Sandboxes.List")
	return w.of.List(ctx, endpoint)
}

func (w sandboxesCalls) End(ctx context.Context, endpoint, id string) error {
	w.recordCall("Sandboxes.End")
	return w.of.End(ctx, endpoint, id)
}

func sandboxBehaviors() []Behavior {
	return []Behavior{
		{"Sandboxes.List", "listing pods without a container runtime fails", func(s *suite) {
			_, err := s.Sandboxes.List(s.ctx, "npipe://./pipe/wmco-contract-none")
			s.expectAnyError("list", err)
			expectEqual(s, "the call used up the timeout", errors.Is(err, context.DeadlineExceeded), false)
		}},
		{"Sandboxes.End", "stopping a pod without a container runtime fails", func(s *suite) {
			err := s.Sandboxes.End(s.ctx, "npipe://./pipe/wmco-contract-none", "0123")
			s.expectAnyError("request", err)
			expectEqual(s, "the call used up the timeout", errors.Is(err, context.DeadlineExceeded), false)
		}},
	}
}
