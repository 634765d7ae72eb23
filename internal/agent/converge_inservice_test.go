package agent_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// applyInService applies a spec on a node with pods.
func (r *rig) applyInService(spec nodespec.NodeSpec) (agentapi.Line, []string) {
	r.Helper()
	line, steps := r.run(append([]string{"apply", "--in-service"}, r.sendSpec(spec)...)...)
	if line.Result == nil || line.Result.Plan == nil {
		r.Fatalf("%s %+v", line.Type, line.Failure)
	}
	return line, steps
}

func TestApplyInService_DisruptivePlanRejected(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	before := r.Snapshot()
	r.versions = versions{"containerd": "v2"}
	line, steps := r.applyInService(r.fullSpec())
	if len(steps) > 0 || !line.Result.Plan.IsDisruptive() {
		t.Errorf("steps %q, and left: %s", steps, formatSteps(*line.Result.Plan))
	}
	if after := r.Snapshot(); !reflect.DeepEqual(after.Services, before.Services) {
		t.Errorf("services:\n%v\nwere\n%v", after.Services, before.Services)
	}
	if applied := line.Result.Facts.Applied; applied == r.fullSpec().Digest() || applied == "" {
		t.Errorf("applied: %q", applied)
	}
	if steps := r.mustApply(r.fullSpec()); !slices.Contains(steps, "StopService containerd") {
		t.Errorf("not in service: %q", steps)
	}
}

// The disruptive plan follows a harmless plan because the host has changed in the meantime.
func TestApplyInService_LaterDisruptivePlanRejected(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	spec := withMirror(r.fullSpec(), "registry.example.com", "server")
	if p := r.runPlan(spec); p.IsDisruptive() || len(p.Steps) == 0 {
		t.Fatalf("not harmless: %s", formatSteps(p))
	}
	proxy := spec.Services[slices.IndexFunc(spec.Services, func(s nodespec.Service) bool { return s.Name == nodespec.ServiceKubeProxy })]
	t.Cleanup(r.OnOperation(func(o fake.Operation) error {
		if o.Process != nil && o.Interface == "Files" && o.Method == "Write" && strings.HasPrefix(o.Target, registries) {
			r.must(r.Drive().WriteFile(proxy.RestartOn[0], []byte("changed by hand")))
		}
		return nil
	}))
	line, steps := r.applyInService(spec)
	if !line.Result.Plan.IsDisruptive() || slices.Contains(steps, "StopService kube-proxy") || len(steps) == 0 {
		t.Errorf("steps %q, and left: %s", steps, formatSteps(*line.Result.Plan))
	}
	if line.Result.Facts.Applied == spec.Digest() {
		t.Error("the spec counts as applied")
	}
}
