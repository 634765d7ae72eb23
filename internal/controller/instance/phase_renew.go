package instance

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/identity"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// renewalPhase is the phase that renews certificates.
type renewalPhase struct {
	connect connectPhase
	nodes   nodes.Nodes
	specs   desired.SpecBuilder
	signer  identity.Signer
	// identify refuses the host of another node.
	identify identifyPhase
	clock    clock.PassiveClock
	jitter   func() float64
}

// minRenewalInterval is the minimum interval between two successful renewals. A signer may issue a certificate that is
// due for renewal immediately or soon.
const minRenewalInterval = time.Minute

// reconcile renews the certificates of a working node before they expire. Neither a disruption slot nor a maintenance
// window is needed, because nothing is restarted and nothing else changes on the host. A failure delays no other
// phase, and is reported only if there is nothing else to report. A node that does not work gets certificates
// during the repair.
func (p renewalPhase) reconcile(ctx context.Context, s *scope.Scope) *result.Result {
	due, _ := identity.Due(s.Instance.Status.Certificates, p.clock.Now(), 0)
	if len(due) == 0 || s.Instance.Status.SpecDigest == "" {
		s.Session.Renewal = scope.Renewal{Next: s.Session.Renewal.Next}
		return nil
	}
	node, err := p.nodes.GetCached(ctx, s.Instance)
	if err != nil {
		return result.FromAPIError(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !nodeidentity.IsBound(s.Instance, node) || !s.WasActivated(node) || !nodeidentity.IsReady(node) {
		return nil
	}
	state := &s.Session.Renewal
	if p.clock.Now().Before(state.Next) {
		if state.Failure != nil {
			s.Renewal = withRequeueAfter(state.Failure, state.Next.Sub(p.clock.Now()))
		}
		return nil
	}
	if s.Host.HasOutcomeExcept(hostjobs.KindConnect, hostjobs.KindFacts, hostjobs.KindRenew) {
		return nil
	}
	failure := p.renewDue(ctx, s, node, due)
	if failure != nil && failure.Outcome == result.Working {
		return failure
	}
	s.Host.Close() // the next renewal may be far in the future
	if failure == nil {
		*state = scope.Renewal{Next: p.clock.Now().Add(minRenewalInterval)}
		return nil
	}
	state.Attempts++
	delay := retryDelay(state.Attempts, p.jitter())
	s.Renewal = renewalBlocked(s.Instance, failure, due, delay)
	state.Next, state.Failure = p.clock.Now().Add(delay), s.Renewal
	return nil
}

// renewDue has the agent create keys and certificate requests, signs the requests, and has the agent install the
// certificates.
func (p renewalPhase) renewDue(ctx context.Context, s *scope.Scope, node *corev1.Node, due []string) *result.Result {
	if s.Instance.Status.Host == nil { // the NodeSpec depends on it
		if o := p.connectAndInspect(ctx, s); o != nil {
			return o
		}
	}
	spec, err := p.specs.Build(s, node)
	if err != nil {
		return result.FromSpecError(err)
	}
	identities := slices.DeleteFunc(slices.Clone(spec.Identities), func(i nodespec.Identity) bool {
		return !slices.Contains(due, i.Name)
	})
	if len(identities) == 0 {
		identity.RecordReported(&s.Instance.Status, spec, s.Host.Facts, p.clock.Now()) // the node's services no longer need them
		return nil
	}
	if o := p.connectAndInspect(ctx, s); o != nil {
		return o
	}
	if o := p.identify.reconcile(ctx, s); o != nil {
		return o
	}
	var names []string
	for _, identity := range identities {
		names = append(names, identity.Name)
	}
	instance, name := s.Instance.Name, s.NodeName()
	renewed, pending, err := s.Host.Renew(names, func(ctx context.Context, facts *plan.Facts) (map[string]string, error) {
		return p.signer.SignAll(ctx, instance, name, identities, facts)
	}, certificateArguments)
	if pending != nil {
		return pending
	}
	if err != nil {
		return p.renewalFailed(s, err)
	}
	if left := identity.NeededIdentities(renewed.RemainingPlan); len(left) > 0 {
		return p.signer.HandleRejection(ctx, s, left[0])
	}
	identity.RecordIssued(&s.Instance.Status, renewed.Issued, p.clock.Now())
	return nil
}

// connectAndInspect connects to the host and reads its facts.
func (p renewalPhase) connectAndInspect(ctx context.Context, s *scope.Scope) *result.Result {
	if o := p.connect.reconcile(ctx, s); o != nil {
		return o
	}
	return inspectHost(ctx, s)
}

// renewalFailed returns the result of a renewal that failed on the host or in signing.
func (p renewalPhase) renewalFailed(s *scope.Scope, err error) *result.Result {
	var refused *identity.RefusedError
	if errors.As(err, &refused) {
		return refused.Result
	}
	var unsigned *hostjobs.UnsignedError
	if errors.As(err, &unsigned) {
		return result.FromAPIError(v1alpha1.ConditionJoined, "issue the certificates", unsigned.Err)
	}
	return s.HandleFailure(v1alpha1.ConditionUpToDate, err)
}

// certificateArguments encodes certificates by identity name, as the DER form in base64url, which needs no
// quoting in any shell.
func certificateArguments(issued map[string]string) []string {
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(issued)) {
		var chain []byte
		for block, rest := pem.Decode([]byte(issued[name])); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "CERTIFICATE" {
				chain = append(chain, block.Bytes...)
			}
		}
		arguments = append(arguments, "--identity-certificate", name+":"+base64.RawURLEncoding.EncodeToString(chain))
	}
	return arguments
}

// renewalBlocked returns the result for a certificate of a working node that cannot be renewed.
func renewalBlocked(instance *v1alpha1.WindowsInstance, failure *result.Result, due []string,
	after time.Duration) *result.Result {
	told := *failure
	told.Condition, told.RequeueAfter, told.Outcome = v1alpha1.ConditionUpToDate, after, result.Retry
	told.Message = fmt.Sprintf("The certificate of %s%s cannot be renewed: %s", strings.Join(due, " and "),
		formatExpiry(instance, due), failure.Message)
	return &told
}

func formatExpiry(instance *v1alpha1.WindowsInstance, due []string) string {
	for _, certificate := range instance.Status.Certificates {
		if slices.Contains(due, certificate.Name) {
			return ", valid until " + certificate.NotAfter.UTC().Format(time.RFC3339) + ","
		}
	}
	return ""
}

// withRequeueAfter returns a copy of a result with another delay.
func withRequeueAfter(failure *result.Result, after time.Duration) *result.Result {
	told := *failure
	told.RequeueAfter = after
	return &told
}

// requeueEarlier shortens the delay before the next reconcile to the time of the next renewal or revert.
func (p renewalPhase) requeueEarlier(s *scope.Scope, next ctrl.Result) ctrl.Result {
	if s.Instance.Spec.DesiredState != v1alpha1.DesiredStateNode || s.Instance.Spec.Paused {
		return next
	}
	next.RequeueAfter = identity.MinPositive(identity.MinPositive(next.RequeueAfter, s.RevertBackoff), s.AgentCheckDelay)
	now := p.clock.Now()
	due, wait := identity.Due(s.Instance.Status.Certificates, now, p.jitter())
	if len(due) > 0 {
		switch retry := s.Session.Renewal.Next.Sub(now); {
		case retry > 0:
			wait = identity.MinPositive(wait, retry)
		case s.Result == nil || s.Result.Outcome == result.Done:
			wait = identity.MinPositive(wait, minRetryDelay) // became due during the reconcile
		}
	}
	next.RequeueAfter = identity.MinPositive(next.RequeueAfter, wait)
	return next
}
