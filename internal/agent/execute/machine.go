package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/releases"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// ignoreNotFound ignores ErrNotExist, so that removing a missing object succeeds.
func ignoreNotFound(err error) error {
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}

func (e *Executor) enableFeature(ctx context.Context, feature string) error {
	err := e.changeFeature(ctx, "enabling Windows feature "+feature, func(ctx context.Context) error {
		return e.Host.Features.Enable(ctx, feature)
	})
	if errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("this edition of Windows does not have the feature %s: %w", feature, err)
	}
	return err
}

func (e *Executor) disableFeature(ctx context.Context, feature string) error {
	return e.changeFeature(ctx, "disabling Windows feature "+feature, func(ctx context.Context) error {
		return ignoreNotFound(e.Host.Features.Disable(ctx, feature))
	})
}

// changeFeature waits for DISM, which is canceled after the limit and may hang nevertheless.
func (e *Executor) changeFeature(ctx context.Context, what string, change func(context.Context) error) error {
	work := timeouts.Operation{
		Timeout: timeouts.FeatureTimeout, GracePeriod: timeouts.FeatureCancelTimeout, What: what, Progress: e.reportProgress,
		Remedy: `Windows servicing does not respond. Check C:\Windows\Logs\DISM\dism.log and C:\Windows\Logs\CBS\CBS.log on the host, then restart the host; the operator resumes afterwards`,
	}
	return work.Run(ctx, e.Clock, change)
}

func (e *Executor) setEnvironment(ctx context.Context, o plan.SetEnvironment) error {
	if o.Unset {
		return e.Host.Environment.Unset(ctx, o.Name)
	}
	return e.Host.Environment.Set(ctx, o.Name, o.Value)
}

// trustCertificate adds an authority to the Windows root store if the fingerprint matches the spec.
func (e *Executor) trustCertificate(ctx context.Context, certificate nodespec.TrustedCertificate) error {
	if sum := plan.Digest(certificate.DER); !strings.EqualFold(sum, certificate.Fingerprint) {
		return fmt.Errorf("the certificate of %s in the NodeSpec has the fingerprint %s instead of %s", certificate.Subject, sum, certificate.Fingerprint)
	}
	return e.Host.Roots.Add(ctx, certificate.DER)
}

// distrustCertificate removes an authority from the Windows root store. If another source provides the
// authority too, the ledger records it as foreign, and the removal is not retried.
func (e *Executor) distrustCertificate(ctx context.Context, fingerprint string) error {
	err := e.Host.Roots.Remove(ctx, fingerprint)
	if !errors.Is(err, host.ErrRefused) || ctx.Err() != nil {
		return err
	}
	ledger, _, readErr := e.Records.Ledger(ctx)
	if readErr != nil {
		return readErr
	}
	if noteErr := e.Records.SetLedger(ctx, ledger.WithForeignCertificate(fingerprint)); noteErr != nil {
		return noteErr
	}
	e.recordWarning("the agent removed its copy of a certificate authority that the node no longer needs, but another source also provides that authority; " +
		"to end the trust of the host, remove the authority from that source (" + err.Error() + ")")
	return nil
}

// killProcess kills a process if its ID still belongs to the same program.
func (e *Executor) killProcess(ctx context.Context, ended host.Process) error {
	now, _, _ := hostutil.FindProcess(ctx, e.Host.Processes, ended.PID) // an inaccessible process is not killed
	if !strings.EqualFold(now.Path, ended.Path) {
		return nil
	}
	if err := e.Host.Processes.Kill(ctx, ended.PID); err != nil {
		return fmt.Errorf("end process %d (%s): %w", ended.PID, ended.Path, err)
	}
	return nil
}

func (e *Executor) newInstaller() *releases.Installer {
	return &releases.Installer{Host: e.Host, Incoming: e.Incoming, Facts: e.Facts, Progress: e.reportProgress}
}
