package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/execute"
	"github.com/windows-machine-config/wmco/internal/agent/releases"
	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// repairRun runs the steps of one repair. A failed step blocks only the steps that depend on it: for example,
// after a boot the node starts even if a certificate authority cannot be trusted.
type repairRun struct {
	*driftRepairer
	outcome  *report.Outcome
	failed   map[string]bool // names of steps that are not retried in this repair
	releases []string        // directories of the releases that could not be installed
	err      error           // the first error

	work
	blocked map[string]bool // lower-case names of services that stay unchanged after a failed step
	down    map[string]bool // stopped services
}

// pendingStepNames returns the names of the steps that have not failed.
func (r *repairRun) pendingStepNames(steps []plan.Step) string {
	var names []string
	for _, step := range steps {
		if !r.failed[step.Name] {
			names = append(names, step.Name)
		}
	}
	return strings.Join(names, "\n")
}

// runSteps runs the steps. If a release cannot be installed, runSteps returns and the next plan omits the release.
func (r *repairRun) runSteps(ctx context.Context, w work) {
	r.work, r.blocked, r.down = w, map[string]bool{}, map[string]bool{}
	e := &execute.Executor{Dependencies: r.Dependencies, Facts: w.facts, Incoming: releases.NewIncoming(nodespec.NodeSpec{}, "")}
	for _, step := range w.steps {
		switch {
		case r.failed[step.Name]:
			r.blockDependents(step)
			continue
		case r.shouldSkip(step):
			continue
		}
		began := r.Clock.Now()
		r.network.RecordStep(step)
		if err := e.RunStep(ctx, step); err != nil {
			if r.err == nil {
				r.err = state.FailureOf(step.Name, err)
			}
			if ctx.Err() != nil {
				return
			}
			r.Log.Printf(ctx, "%s failed: %v", step.Name, err)
			r.failed[step.Name] = true
			if install, ok := step.Operation.(plan.InstallRelease); ok {
				r.releases = append(r.releases, install.Release.Directory)
				return
			}
			r.blockDependents(step)
			continue
		}
		if advice := e.TakeWarning(); advice != "" {
			r.Log.Printf(ctx, "%s: %s", step.Name, advice)
			r.blockDependents(step)
			continue // tried but not completed
		}
		r.recordEffect(step)
		r.outcome.Repairs = append(r.outcome.Repairs, report.Repair{
			Name: step.Name, Reason: step.Reason, Start: r.boot.IsStart(step, r.watcher.spec),
		})
		r.Log.Printf(ctx, "%s, because %s (%s)", step.Name, step.Reason, r.Clock.Since(began).Round(time.Millisecond))
	}
}

// recordEffect records the effect of a step on the running services.
func (r *repairRun) recordEffect(step plan.Step) {
	switch o := step.Operation.(type) {
	case plan.StopService:
		r.down[strings.ToLower(o.Service)] = true
	case plan.StartService:
		r.down[strings.ToLower(o.Service)] = false
	}
}

// blockDependents blocks the steps that depend on a step that was not completed.
func (r *repairRun) blockDependents(step plan.Step) {
	switch o := step.Operation.(type) {
	case plan.StopService:
		r.blocked[strings.ToLower(o.Service)] = true
	case plan.ConfigureService:
		r.blocked[strings.ToLower(o.Service.Name)] = true
	case plan.StartService:
		r.blocked[strings.ToLower(o.Service)] = true
	case plan.WriteFile:
		for _, service := range r.servicesReading(o.File) {
			r.blocked[service] = true
		}
	case plan.RemovePath:
		if plan.IsForNetwork(step, r.spec) {
			r.blocked[strings.ToLower(nodespec.ServiceKubelet)] = true // the kubelet would accept pods
		}
	}
}

// servicesReading returns the lower-case names of the services that read a file at their start.
func (r *repairRun) servicesReading(file nodespec.File) (names []string) {
	for _, service := range r.spec.Services {
		if slices.ContainsFunc(service.RestartOn, func(path string) bool { return nodespec.IsSamePath(path, file.Path) }) {
			names = append(names, strings.ToLower(service.Name))
		}
	}
	return names
}

// shouldSkip reports whether a step depends on a step that was not completed.
func (r *repairRun) shouldSkip(step plan.Step) bool {
	switch o := step.Operation.(type) {
	case plan.StopService:
		return r.blocked[strings.ToLower(o.Service)]
	case plan.ConfigureService:
		return r.blocked[strings.ToLower(o.Service.Name)]
	case plan.WriteFile:
		// A service that could not be stopped would never notice the change, and neither would a later
		// comparison.
		return slices.ContainsFunc(r.servicesReading(o.File), func(name string) bool { return r.blocked[name] && r.isRunning(name) })
	case plan.StartService:
		name := strings.ToLower(o.Service)
		// Windows also starts the dependencies of a service.
		r.blocked[name] = r.blocked[name] || slices.ContainsFunc(r.serviceDependencies(name), func(dependency string) bool {
			return r.blocked[dependency] && !r.isRunning(dependency)
		})
		return r.blocked[name]
	}
	return false
}

// serviceDependencies returns the dependencies of a service of the spec, in lower case.
func (r *repairRun) serviceDependencies(name string) (names []string) {
	for _, service := range r.spec.Services {
		if strings.EqualFold(service.Name, name) {
			for _, dependency := range service.Dependencies {
				names = append(names, strings.ToLower(dependency))
			}
		}
	}
	return names
}

// isRunning reports whether a service runs after the completed steps.
func (r *repairRun) isRunning(name string) bool {
	if down, known := r.down[name]; known {
		return !down
	}
	for known, service := range r.facts.Services {
		if strings.EqualFold(known, name) {
			return service.State != host.ServiceStopped
		}
	}
	return false
}
