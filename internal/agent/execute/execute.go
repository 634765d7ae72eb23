// Package execute runs the steps of a plan on the host. It runs each step once and reports progress; callers
// decide whether a step is needed and how to handle a failure. Defender reads, changes and checks the
// exclusions of Microsoft Defender Antivirus; a refusal by Defender fails no step.
package execute

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/identity"
	"github.com/windows-machine-config/wmco/internal/agent/releases"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// MaxRounds is the maximum number of plans that one command runs. A first configuration takes three rounds for
// each spec.
const MaxRounds = 12

// Dependencies are the dependencies of steps.
type Dependencies struct {
	Host      host.Host
	Clock     clock.WithTicker
	Rand      io.Reader // for keys
	Version   string    // of the agent
	Records   state.Records
	Antivirus *Defender
	Answer    *state.Writer // receives steps and progress
}

// Executor runs the steps of a plan. The operations are in separate files by concern.
type Executor struct {
	Dependencies
	// Facts are the facts that the plan was created from.
	Facts plan.Facts
	// Incoming is the payload sent for the spec. It may be nil if no release is installed.
	Incoming *releases.Incoming

	current agentapi.Step // for lines of progress
}

// RunStep runs one step. Steps with timeouts of their own, and steps that move files and report progress, are not
// limited here. All other steps may hang in Windows and are limited to StepTimeout.
func (e *Executor) RunStep(ctx context.Context, step plan.Step) error {
	switch step.Operation.(type) {
	case plan.InstallRelease, plan.RemovePath, plan.EnableFeature, plan.DisableFeature, plan.StartService, plan.StopService, plan.RestoreService,
		plan.EndPods:
		return e.runOperation(ctx, step)
	}
	late := &agentapi.Failure{
		Reason: agentapi.ReasonStepFailed, Message: fmt.Sprintf("Windows did not complete the step within %s", timeouts.StepTimeout),
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeouts.StepTimeout, late)
	defer cancel()
	err := e.runOperation(limited, step)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		late.Message += ": " + err.Error()
		return late
	}
	return err
}

// runOperation runs the operation of a step.
//
//nolint:funlen,gocyclo // one case for each kind of operation
func (e *Executor) runOperation(ctx context.Context, step plan.Step) error {
	switch o := step.Operation.(type) {
	case plan.MakeDirectory:
		return e.makeDirectory(ctx, o.Directory)
	case plan.InstallRelease:
		return e.newInstaller().Install(ctx, o.Release)
	case plan.WriteFile:
		return e.writeFile(ctx, o.File)
	case plan.MakeLink:
		return e.makeLink(ctx, o.Link)
	case plan.RemovePath:
		return e.postponeIfMounted(ctx, o.Path, e.removePath(ctx, o))
	case plan.EnableFeature:
		return e.enableFeature(ctx, o.Feature)
	case plan.DisableFeature:
		return e.disableFeature(ctx, o.Feature)
	case plan.SetHostName:
		return e.Host.System.SetHostName(ctx, o.HostName)
	case plan.SetEnvironment:
		return e.setEnvironment(ctx, o)
	case plan.SetFirewallRule:
		return e.Host.Firewall.SetRule(ctx, o.Rule)
	case plan.DeleteFirewallRule:
		return ignoreNotFound(e.Host.Firewall.DeleteRule(ctx, o.Rule))
	case plan.AddEventSource:
		return e.Host.EventLog.AddSource(ctx, o.Source)
	case plan.RemoveEventSource:
		return e.Host.EventLog.RemoveSource(ctx, o.Source)
	case plan.TrustCertificate:
		return e.trustCertificate(ctx, o.Certificate)
	case plan.DistrustCertificate:
		return e.distrustCertificate(ctx, o.Fingerprint)
	case plan.SetRegistryNumber:
		return e.Host.Registry.SetNumber(ctx, o.At, o.Value)
	case plan.DeleteRegistryValue:
		return e.Host.Registry.Delete(ctx, o.At)
	case plan.AddRoute:
		return e.Host.Routes.Add(ctx, o.Destination)
	case plan.DeleteRoute:
		return e.Host.Routes.Delete(ctx, o.Destination)
	case plan.AddExclusion:
		return e.addExclusion(ctx, o.Exclusion)
	case plan.RemoveExclusion:
		return e.removeExclusion(ctx, o.Exclusion)
	case plan.RequestCertificate:
		return identity.Request(ctx, e.Host, e.Rand, o.Identity)
	case plan.InstallCertificate:
		return identity.Install(ctx, e.Host, o.Identity)
	case plan.ConfigureService:
		return e.Host.Services.Configure(ctx, o.Service)
	case plan.SetStartType:
		return ignoreNotFound(e.Host.Services.SetStartType(ctx, o.Service, o.StartType))
	case plan.StartService:
		return e.startService(ctx, o.Service)
	case plan.StopService:
		return e.stopService(ctx, o.Service)
	case plan.DeleteService:
		return e.deleteService(ctx, o.Service)
	case plan.RestoreService:
		return e.restoreService(ctx, o.Service)
	case plan.EndPods:
		return e.endPods(ctx, o)
	case plan.KillProcess:
		return e.killProcess(ctx, o.Process)
	case plan.AwaitNetwork:
		return e.awaitNetwork(ctx, o)
	case plan.CreateEndpoint:
		return e.createEndpoint(ctx, o)
	case plan.AttachEndpoint:
		return e.attachEndpoint(ctx, o.Name)
	case plan.DisableDNSRegistration:
		return e.disableRegistration(ctx, o)
	case plan.DeleteNetwork:
		return ignoreNotFound(e.Host.Networks.DeleteNetwork(ctx, o.Network))
	}
	return fmt.Errorf("this agent (%s) does not support operation %T", e.Version, step.Operation)
}

// RunSteps runs the steps of a plan up to the first step that restarts the host.
func (e *Executor) RunSteps(ctx context.Context, steps []plan.Step) error {
	for i, step := range steps {
		if step.Reboots {
			return nil
		}
		e.current = agentapi.Step{Name: step.Name, Reason: step.Reason, Index: i + 1, Of: len(steps), State: agentapi.StepStarted}
		e.Answer.Step(e.current)
		if err := e.RunStep(ctx, step); err != nil {
			return state.FailureOf(step.Name, err)
		}
		e.current.State = agentapi.StepDone
		e.Answer.Step(e.current)
	}
	return nil
}
