package hosttest

import (
	"context"

	"github.com/windows-machine-config/wmco/internal/host"
)

type layersCalls struct {
	of host.Layers
	*calls
}

func (w layersCalls) Destroy(ctx context.Context, folder string) error {
	w.recordCall("Layers.Destroy")
	return w.of.Destroy(ctx, folder)
}

func layerBehaviors() []Behavior {
	return []Behavior{
		{"Layers.Destroy", "a missing layer is no error, even without the container platform", func(s *suite) {
			s.requireNoError(s.Layers.Destroy(s.ctx, Scratch+`\snapshots\1`))
		}},
	}
}
