package hostjobs

import (
	"context"
	"net"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// kubeletPortTimeout is the timeout of a connection to the kubelet of a host.
const kubeletPortTimeout = 5 * time.Second

// Dial connects to a port of a host.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// verified is the result of Verify.
type verified struct {
	result *agentapi.Result
	port   error
}

// Verify has the agent verify the node, and connects to the port of the kubelet. It reports whether the result is
// new.
func (h *Host) Verify(dial Dial, kubelet string) (fresh bool, pending *result.Result, err error) {
	if h.Verified != nil {
		return false, nil, nil
	}
	got, pending, err := doOverConnection(h, KindVerify, kubelet, workingResult(v1alpha1.ConditionReady, "Verify"), nil, func(ctx context.Context, s *session) (verified, error) {
		line, err := s.Run(ctx, agentapi.Verify)
		if err != nil {
			return verified{}, err
		}
		return verified{line.Result, probePort(ctx, dial, kubelet)}, nil
	})
	if pending == nil && err == nil {
		h.Verified, h.KubeletPortError = got.result, got.port
	}
	return pending == nil && err == nil, pending, err
}

// probePort checks the connection to a port of the host.
func probePort(ctx context.Context, dial Dial, address string) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletPortTimeout)
	defer cancel()
	connection, err := dial(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close() // nothing was sent
	}
	return err
}

// Commit has the agent delete the rollback target of the host, and closes the connection. If that fails, the
// deletion is done with the next change. The reconcile does not wait for the job.
func (h *Host) Commit() {
	hosts, name := h.runner.hosts, h.name.Name
	_, _, _ = doOverConnection(h, KindCommit, "", workingResult(v1alpha1.ConditionReady, "Commit"), nil, func(ctx context.Context, s *session) (any, error) {
		defer hosts.Close(name)
		if _, err := s.runChange(ctx, s.agent, agentapi.Commit); err != nil {
			log.FromContext(ctx).Info("the files of the previous NodeSpec stay on the host until the next change", "reason", err.Error())
		}
		return nil, nil
	})
}

// Rollback rolls the host back with the agent that applied the rollback target. Only that agent reliably
// interprets its own target.
func (h *Host) Rollback(before Before) (agentapi.Line, *result.Result, error) {
	agent := agentPath(h.Facts.RollbackAgent, h.Agent)
	return doOverConnection(h, KindRollback, h.Facts.RollbackTarget, workingResult(v1alpha1.ConditionReady, "Rollback"), before, func(ctx context.Context, s *session) (agentapi.Line, error) {
		return s.runChange(ctx, agent, agentapi.Rollback)
	})
}

// VerifyRolledBack verifies the node with the agent that applied the rollback target.
func (h *Host) VerifyRolledBack() (*agentapi.Result, *result.Result, error) {
	agent := agentPath(h.Facts.AppliedAgent, h.Agent)
	return doOverConnection(h, KindVerify, h.Facts.Applied+" "+agent, workingResult(v1alpha1.ConditionReady, "Verify"), nil, func(ctx context.Context, s *session) (*agentapi.Result, error) {
		line, err := s.runWithAgent(ctx, agent, agentapi.Verify)
		return line.Result, err
	})
}

// Renewal is the result of a renewal of certificates.
type Renewal struct {
	// Issued are the new certificates, by the names of their identities. RemainingPlan names the certificates that
	// the agent has not installed.
	Issued        map[string]string
	RemainingPlan plan.Plan
}

// UnsignedError means that certificates were not signed.
type UnsignedError struct{ Err error }

func (e *UnsignedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnsignedError) Unwrap() error { return e.Err }

// Renew has the agent create keys and certificate requests for identities, signs the requests, and has the agent
// install the certificates.
func (h *Host) Renew(names []string, sign func(context.Context, *plan.Facts) (map[string]string, error),
	encode func(map[string]string) []string) (Renewal, *result.Result, error) {
	return doOverConnection(h, KindRenew, strings.Join(names, " "), workingResult(v1alpha1.ConditionUpToDate, "Renew"), nil, func(ctx context.Context, s *session) (Renewal, error) {
		var arguments []string
		for _, name := range names {
			arguments = append(arguments, "--identity", name)
		}
		line, err := s.runChange(ctx, s.agent, agentapi.Renew, arguments...)
		if err != nil {
			return Renewal{}, err
		}
		if err := s.BeginChange(); err != nil { // nothing is signed for a deleted instance
			return Renewal{}, err
		}
		issued, err := sign(ctx, line.Result.Facts)
		if err != nil {
			return Renewal{}, &UnsignedError{err}
		}
		if line, err = s.runChange(ctx, s.agent, agentapi.Renew, append(arguments, encode(issued)...)...); err != nil {
			return Renewal{}, err
		}
		return Renewal{Issued: issued, RemainingPlan: *line.Result.Plan}, nil
	})
}

// Reboot has the agent restart a host if the boot ID is unchanged.
func (h *Host) Reboot(boot string, before Before) (agentapi.Line, *result.Result, error) {
	return doOverConnection(h, KindReboot, boot, workingResult(v1alpha1.ConditionPrepared, "Reboot"), before, func(ctx context.Context, s *session) (agentapi.Line, error) {
		return s.runChange(ctx, s.agent, agentapi.Reboot, "--boot-id", "boot:"+boot)
	})
}

// Remains is the result of a removal's inspection of a host.
type Remains struct {
	// Changed is true if the agent has left a record of the original state on the host.
	Changed bool
}

// FindRemains reports whether the host has anything to restore.
func (h *Host) FindRemains() (*Remains, *result.Result, error) {
	if h.Remains != nil {
		return h.Remains, nil, nil
	}
	remains, pending, err := doOverConnection(h, KindFindRemains, "", workingResult(v1alpha1.ConditionReady, "FindRemains"), nil, func(ctx context.Context, s *session) (*Remains, error) {
		for _, path := range []string{nodespec.LedgerPath, nodespec.FoundPath} {
			if there, err := s.connection.Exists(ctx, path); there || err != nil {
				return &Remains{Changed: there}, err
			}
		}
		return &Remains{}, nil
	})
	if pending == nil && err == nil {
		h.Remains = remains
	}
	return remains, pending, err
}

// Restore has the agent restore the host if withAgent is true, and deletes the agent directories. It returns the
// last output line of the agent; none without the agent.
func (h *Host) Restore(withAgent bool, before Before) (agentapi.Line, *result.Result, error) {
	input := "without the agent"
	if withAgent {
		input = "with the agent"
	}
	return doOverConnection(h, KindRestore, input, workingResult(v1alpha1.ConditionReady, "Remove"), before, func(ctx context.Context, s *session) (agentapi.Line, error) {
		var line agentapi.Line
		if err := s.BeginChange(); err != nil {
			return line, err
		}
		if withAgent {
			var err error
			if line, err = s.Run(ctx, agentapi.Remove); err != nil || line.Type == agentapi.TypeRebooting || !line.Result.Removed {
				return line, err
			}
		}
		if err := s.connection.Remove(ctx, nodespec.AgentRoot, nodespec.LandingRoot); err != nil {
			return line, err
		}
		// The agent has left only files that existed before the installation. Without the ledger, these files are
		// unknown.
		return line, s.connection.RemoveEmpty(ctx, nodespec.Root)
	})
}
