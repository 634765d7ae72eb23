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

// repairer does the steps of one repair. One that fails keeps nobody away but those that need it: after a boot the node
// comes up although an authority cannot be trusted, say.
type repairer struct {
	*keeper
	outcome  *report.Outcome
	failed   map[string]bool // the names of steps, which are not tried again in this repair
	releases []string        // the folders of those that could not be installed
	err      error           // the first

	work
	blocked map[string]bool // services, in lower case, that stay as they are because a step of theirs has failed
	down    map[string]bool // services that were stopped
}

// untried are the names of the steps that have not failed.
func (r *repairer) untried(steps []plan.Step) string {
	var names []string
	for _, step := range steps {
		if !r.failed[step.Name] {
			names = append(names, step.Name)
		}
	}
	return strings.Join(names, "\n")
}

// do does the steps. When a release cannot be installed, the rest is left to a plan without it.
func (r *repairer) do(ctx context.Context, w work) {
	r.work, r.blocked, r.down = w, map[string]bool{}, map[string]bool{}
	e := &execute.Executor{Means: r.Means, Facts: w.facts, Incoming: releases.NewIncoming(nodespec.NodeSpec{}, "")}
	for _, step := range w.steps {
		switch {
		case r.failed[step.Name]:
			r.block(step)
			continue
		case r.skips(step):
			continue
		}
		began := r.Clock.Now()
		r.network.Notice(step)
		if err := e.Do(ctx, step); err != nil {
			if r.err == nil {
				r.err = state.FailureOf(step.Name, err)
			}
			if ctx.Err() != nil {
				return
			}
			r.Log.Printf(ctx, "%s has failed: %v", step.Name, err)
			r.failed[step.Name] = true
			if install, ok := step.Operation.(plan.InstallRelease); ok {
				r.releases = append(r.releases, install.Release.Directory)
				return
			}
			r.block(step)
			continue
		}
		if advice := e.TakeAdvice(); advice != "" {
			r.Log.Printf(ctx, "%s: %s", step.Name, advice)
			r.block(step)
			continue // it was tried and not done
		}
		r.note(step)
		r.outcome.Repairs = append(r.outcome.Repairs, report.Repair{
			Name: step.Name, Reason: step.Reason, Start: r.boot.IsStart(step, r.watcher.spec),
		})
		r.Log.Printf(ctx, "%s, because %s (%s)", step.Name, step.Reason, r.Clock.Since(began).Round(time.Millisecond))
	}
}

// note remembers what a step has done to what runs.
func (r *repairer) note(step plan.Step) {
	switch o := step.Operation.(type) {
	case plan.StopService:
		r.down[strings.ToLower(o.Service)] = true
	case plan.StartService:
		r.down[strings.ToLower(o.Service)] = false
	}
}

// block keeps back what needs a step that was not done.
func (r *repairer) block(step plan.Step) {
	switch o := step.Operation.(type) {
	case plan.StopService:
		r.blocked[strings.ToLower(o.Service)] = true
	case plan.ConfigureService:
		r.blocked[strings.ToLower(o.Service.Name)] = true
	case plan.StartService:
		r.blocked[strings.ToLower(o.Service)] = true
	case plan.WriteFile:
		for _, service := range r.readers(o.File) {
			r.blocked[service] = true
		}
	case plan.RemovePath:
		if plan.IsForNetwork(step, r.spec) {
			r.blocked[strings.ToLower(nodespec.ServiceKubelet)] = true // it would take pods
		}
	}
}

// readers are the services, in lower case, that read a file at their start.
func (r *repairer) readers(file nodespec.File) (names []string) {
	for _, service := range r.spec.Services {
		if slices.ContainsFunc(service.RestartOn, func(path string) bool { return nodespec.SamePath(path, file.Path) }) {
			names = append(names, strings.ToLower(service.Name))
		}
	}
	return names
}

// skips reports whether a step needs one that was not done.
func (r *repairer) skips(step plan.Step) bool {
	switch o := step.Operation.(type) {
	case plan.StopService:
		return r.blocked[strings.ToLower(o.Service)]
	case plan.ConfigureService:
		return r.blocked[strings.ToLower(o.Service.Name)]
	case plan.WriteFile:
		// A service that could not be stopped would not notice the change, nor anybody later.
		return slices.ContainsFunc(r.readers(o.File), func(name string) bool { return r.blocked[name] && r.runs(name) })
	case plan.StartService:
		name := strings.ToLower(o.Service)
		// Windows starts what a service depends on with it.
		r.blocked[name] = r.blocked[name] || slices.ContainsFunc(r.dependencies(name), func(dependency string) bool {
			return r.blocked[dependency] && !r.runs(dependency)
		})
		return r.blocked[name]
	}
	return false
}

// dependencies returns the dependencies of a service of the spec, in lower case.
func (r *repairer) dependencies(name string) (names []string) {
	for _, service := range r.spec.Services {
		if strings.EqualFold(service.Name, name) {
			for _, dependency := range service.Dependencies {
				names = append(names, strings.ToLower(dependency))
			}
		}
	}
	return names
}

// runs reports whether a service runs by now.
func (r *repairer) runs(name string) bool {
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
