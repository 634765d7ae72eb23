package agent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// executor does the steps of a plan. What each does is in files by concern.
type executor struct {
	*agent
	facts   plan.Facts // that the plan was made of
	payload *incoming
	current verb.Step // for lines of progress
}

// do does one step. What moves files takes as long as it takes, and tells how far it is; all else may hang in Windows.
func (e *executor) do(ctx context.Context, step plan.Step) error {
	switch step.Operation.(type) {
	case plan.InstallRelease, plan.RemovePath, plan.EnableFeature, plan.DisableFeature, plan.StartService, plan.StopService, plan.RestoreService:
		return e.operate(ctx, step)
	}
	late := &verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf("Windows has not done it within %s", LimitStep)}
	limited, cancel := context.WithTimeoutCause(ctx, LimitStep, late)
	defer cancel()
	err := e.operate(limited, step)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		late.Message += ": " + err.Error()
		return late
	}
	return err
}

func (e *executor) operate(ctx context.Context, step plan.Step) error {
	switch o := step.Operation.(type) {
	case plan.MakeDirectory:
		return e.makeDirectory(ctx, o.Directory)
	case plan.InstallRelease:
		return e.installRelease(ctx, o.Release)
	case plan.WriteFile:
		return e.writeFile(ctx, o.File)
	case plan.MakeLink:
		return e.makeLink(ctx, o.Link)
	case plan.RemovePath:
		return e.removePath(ctx, o)
	case plan.ConfigureService, plan.StartService, plan.StopService, plan.DeleteService, plan.RestoreService, plan.KillProcess,
		plan.AwaitNetwork, plan.CreateEndpoint, plan.DeleteNetwork:
		return e.doRunning(ctx, o)
	}
	return e.doMachine(ctx, step.Operation)
}

// doMachine does steps about Windows itself, and the node's certificates.
func (e *executor) doMachine(ctx context.Context, operation plan.Operation) error {
	switch o := operation.(type) {
	case plan.EnableFeature:
		return e.enableFeature(ctx, o.Feature)
	case plan.DisableFeature:
		return e.disableFeature(ctx, o.Feature)
	case plan.SetHostName:
		return e.host.System.SetHostName(ctx, o.HostName)
	case plan.SetEnvironment:
		return e.setEnvironment(ctx, o)
	case plan.SetFirewallRule:
		return e.host.Firewall.SetRule(ctx, o.Rule)
	case plan.DeleteFirewallRule:
		return absentIsFine(e.host.Firewall.DeleteRule(ctx, o.Rule))
	case plan.AddEventSource:
		return e.host.EventLog.AddSource(ctx, o.Source)
	case plan.RemoveEventSource:
		return e.host.EventLog.RemoveSource(ctx, o.Source)
	case plan.TrustCertificate:
		return e.trustCertificate(ctx, o.Certificate)
	case plan.DistrustCertificate:
		return e.distrustCertificate(ctx, o.Fingerprint)
	case plan.AddRoute:
		return e.host.Routes.Add(ctx, o.Destination)
	case plan.DeleteRoute:
		return e.host.Routes.Delete(ctx, o.Destination)
	case plan.AddExclusion:
		return e.addExclusion(ctx, o.Exclusion)
	case plan.RemoveExclusion:
		return e.removeExclusion(ctx, o.Exclusion)
	case plan.RequestCertificate:
		return e.requestCertificate(ctx, o.Identity)
	case plan.InstallCertificate:
		return e.installCertificate(ctx, o.Identity)
	}
	return fmt.Errorf("this agent (%s) cannot do %T", e.version, operation)
}

// doRunning does steps about what runs: services, processes and networks.
func (e *executor) doRunning(ctx context.Context, operation plan.Operation) error {
	switch o := operation.(type) {
	case plan.ConfigureService:
		return e.host.Services.Configure(ctx, o.Service)
	case plan.StartService:
		return e.startService(ctx, o.Service)
	case plan.StopService:
		return e.stopService(ctx, o.Service)
	case plan.DeleteService:
		return e.deleteService(ctx, o.Service)
	case plan.RestoreService:
		return e.restoreService(ctx, o.Service)
	case plan.KillProcess:
		return e.killProcess(ctx, o.Process)
	case plan.AwaitNetwork:
		return e.awaitNetwork(ctx, o)
	case plan.CreateEndpoint:
		return e.createEndpoint(ctx, o)
	case plan.DeleteNetwork:
		return absentIsFine(e.host.Networks.DeleteNetwork(ctx, o.Network))
	}
	return fmt.Errorf("this agent (%s) cannot do %T", e.version, operation)
}

// doAll does the steps of a plan up to one that restarts the host.
func (e *executor) doAll(ctx context.Context, steps []plan.Step) error {
	for i, step := range steps {
		if step.Reboots {
			return nil
		}
		e.current = verb.Step{Name: step.Name, Reason: step.Reason, Index: i + 1, Of: len(steps), State: verb.StepStarted}
		e.answer.step(e.current)
		if err := e.do(ctx, step); err != nil {
			return failureOf(step.Name, err)
		}
		e.current.State = verb.StepDone
		e.answer.step(e.current)
	}
	return nil
}

// progress tells how far the present step is.
func (e *executor) progress(format string, arguments ...any) {
	e.answer.detail(e.current, fmt.Sprintf(format, arguments...))
}

// advise says with the step that it was tried and not done, which keeps nobody from going on.
func (e *executor) advise(text string) {
	e.current.State, e.current.Detail = verb.StepProgress, text
	e.answer.step(e.current)
}

// within does something that takes long, for at most the limit, and gives a sign of life while it does.
func (e *executor) within(ctx context.Context, limit time.Duration, what string, action func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, watched := make(chan struct{}), make(chan struct{})
	timer := e.clock.NewTimer(limit) // The limit counts from here, whenever the goroutine begins.
	go func() {
		defer close(watched)
		defer timer.Stop()
		e.watch(what, limit, timer, ended, cancel)
	}()
	err := action(ctx)
	close(ended)
	<-watched
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

func (e *executor) watch(what string, limit time.Duration, timer clock.Timer, ended <-chan struct{}, cancel context.CancelCauseFunc) {
	ticker := e.clock.NewTicker(HeartbeatInterval)
	defer ticker.Stop()
	began := e.clock.Now()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C():
			e.progress("%s, for %s of at most %s", what, e.clock.Since(began).Round(time.Second), limit)
		case <-timer.C():
			cancel(&verb.Failure{Reason: verb.ReasonStepFailed, Message: fmt.Sprintf("%s took longer than %s", what, limit)})
			return
		}
	}
}
