package agent

import (
	"context"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

func (e *executor) startService(ctx context.Context, name string) error {
	err := e.within(ctx, LimitServiceStart, "service "+name+" starts", func(ctx context.Context) error {
		return e.host.Services.Start(ctx, name)
	})
	if err != nil {
		return e.serviceFailure(ctx, name, "does not start", err)
	}
	return nil
}

func (e *executor) stopService(ctx context.Context, name string) error {
	err := e.within(ctx, LimitServiceStop, "service "+name+" stops", func(ctx context.Context) error {
		return absentIsFine(e.host.Services.Stop(ctx, name))
	})
	if err != nil {
		return e.serviceFailure(ctx, name, "does not stop", err)
	}
	return nil
}

// serviceFailure says what is known of a service that does not do as it is told, and where to look.
func (e *executor) serviceFailure(ctx context.Context, name, what string, err error) error {
	failure := failureOf("", err)
	if ctx.Err() != nil {
		return failure // it is the verb that was interrupted
	}
	message := fmt.Sprintf("service %s %s: %v", name, what, err)
	if found, queryErr := e.host.Services.Query(ctx, name); queryErr == nil && len(found) == 1 && found[0].State == host.ServiceStopped {
		message += fmt.Sprintf("; its last exit code is %d", found[0].ExitCode)
	}
	return &verb.Failure{Reason: verb.ReasonServiceFailed, Message: message + "; look at " + nodespec.LogDirectory(name) + " on the host"}
}

func (e *executor) deleteService(ctx context.Context, name string) error {
	if err := absentIsFine(e.host.Services.Delete(ctx, name)); err != nil {
		return fmt.Errorf("delete service %s: %w", name, err)
	}
	return nil
}

// restoreService gives a service the configuration from before us, and lets it run if it ran.
func (e *executor) restoreService(ctx context.Context, before host.Service) error {
	if err := e.stopService(ctx, before.Name); err != nil {
		return err
	}
	if err := e.host.Services.Configure(ctx, before.ServiceConfig); err != nil {
		return fmt.Errorf("restore service %s: %w", before.Name, err)
	}
	if before.State != host.ServiceRunning {
		return nil
	}
	return e.startService(ctx, before.Name)
}
