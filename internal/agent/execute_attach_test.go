package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
)

// HNS may refuse to attach an endpoint for some seconds after creating it, and show the attachment even later.
func TestAttachEndpoint_WaitsForSlowHNS(t *testing.T) {
	t.Parallel()
	attached := func(r *rig) bool {
		endpoints, err := r.Host().Networks.Endpoints(r.ctx)
		r.must(err)
		return slices.ContainsFunc(endpoints, func(e host.HNSEndpoint) bool { return e.Name == host.SourceVIPEndpoint && e.Attached })
	}
	for name, c := range map[string]struct{ refused, hidden int }{
		"the first attempts fail: one verb attaches it":              {refused: 3},
		"the adapter appears after the answer: one verb attaches it": {hidden: 6},
		"both: one verb attaches it":                                 {refused: 2, hidden: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newConfiguredRig(t)
			r.must(r.Host().Networks.DeleteEndpoint(r.ctx, host.SourceVIPEndpoint))
			r.DelayAttachment(c.refused, c.hidden)
			line, _ := r.apply(r.fullSpec())
			if line.Type != agentapi.TypeResult || !attached(r) {
				t.Errorf("got %+v, attached: %t", line.Failure, attached(r))
			}
		})
	}
	t.Run("an attachment that does not come ends the verb with the reason", func(t *testing.T) {
		t.Parallel()
		r := newConfiguredRig(t)
		r.must(r.Host().Networks.DeleteEndpoint(r.ctx, host.SourceVIPEndpoint))
		r.DelayAttachment(1<<30, 0)
		start := time.Now()
		line, _ := r.apply(r.fullSpec())
		if line.Type != agentapi.TypeFailure || line.Failure.Step != "AttachEndpoint VIPEndpoint" || !strings.Contains(line.Failure.Message, "0x80070022") {
			t.Errorf("got %+v", line)
		}
		if elapsed := time.Since(start); elapsed < timeouts.AttachTimeout {
			t.Errorf("it was given up after %s", elapsed)
		}
	})
}
