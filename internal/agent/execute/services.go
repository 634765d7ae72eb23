package execute

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func (e *Executor) startService(ctx context.Context, name string) error {
	err := e.withProgress(ctx, timeouts.ServiceStartTimeout, "starting service "+name, func(ctx context.Context) error {
		return e.Host.Services.Start(ctx, name)
	})
	if err != nil {
		return e.serviceFailure(ctx, name, "does not start", err)
	}
	return nil
}

func (e *Executor) stopService(ctx context.Context, name string) error {
	err := e.withProgress(ctx, timeouts.ServiceStopTimeout, "stopping service "+name, func(ctx context.Context) error {
		return ignoreNotFound(e.Host.Services.Stop(ctx, name))
	})
	if err != nil {
		return e.serviceFailure(ctx, name, "does not stop", err)
	}
	return nil
}

// serviceFailure describes a service that does not start or stop on request, and names its log.
func (e *Executor) serviceFailure(ctx context.Context, name, what string, err error) error {
	failure := state.FailureOf("", err)
	if ctx.Err() != nil {
		return failure // the command was interrupted
	}
	message, foreign := fmt.Sprintf("service %s %s: %v", name, what, err), ""
	if found, queryErr := e.Host.Services.Query(ctx, name); queryErr == nil && len(found) == 1 && found[0].State == host.ServiceStopped {
		message += fmt.Sprintf("; its last exit code is %d", found[0].ExitCode)
		foreign = hostutil.DescribeForeignRuntime(ctx, e.Host.Probes, name)
	}
	return &agentapi.Failure{Reason: agentapi.ReasonServiceFailed, Message: message + "; see " + logOf(name) + " on the host" + foreign}
}

// logOf returns the location of the log of a service.
func logOf(service string) string {
	if service == nodespec.ServiceHNS {
		return "the event log System"
	}
	return nodespec.LogDirectory(service)
}

func (e *Executor) deleteService(ctx context.Context, name string) error {
	if err := ignoreNotFound(e.Host.Services.Delete(ctx, name)); err != nil {
		return fmt.Errorf("delete service %s: %w", name, err)
	}
	return nil
}

// restoreService restores the original configuration of a service, and starts the service if it ran before.
func (e *Executor) restoreService(ctx context.Context, before host.Service) error {
	if err := e.stopService(ctx, before.Name); err != nil {
		return err
	}
	if err := e.Host.Services.Configure(ctx, before.ServiceConfig); err != nil {
		return fmt.Errorf("restore service %s: %w", before.Name, err)
	}
	if before.State != host.ServiceRunning {
		return nil
	}
	return e.startService(ctx, before.Name)
}
