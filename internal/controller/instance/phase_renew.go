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

// renew is the phase that renews certificates.
type renew struct {
	reach  reach
	nodes  nodes.Nodes
	specs  desired.Specs
	signer identity.Signer
	// identify refuses the host of another node.
	identify identify
	clock    clock.PassiveClock
	jitter   func() float64
}

// renewalFloor is the minimum interval between two successful renewals. A signer may issue a certificate that is
// due for renewal immediately or soon.
const renewalFloor = time.Minute

// run renews the certificates of a working node before they expire. Neither a disruption slot nor a maintenance
// window is needed, because nothing is restarted and nothing else changes on the host. A failure delays no other
// phase, and is reported only if there is nothing else to report. A node that does not work gets certificates
// during the repair.
func (p renew) run(ctx context.Context, s *scope.Scope) *result.Result {
	due, _ := identity.Due(s.Instance.Status.Certificates, p.clock.Now(), 0)
	if len(due) == 0 || s.Instance.Status.SpecDigest == "" {
		s.Session.Renewal = scope.Renewal{Next: s.Session.Renewal.Next}
		return nil
	}
	node, err := p.nodes.Recent(ctx, s.Instance)
	if err != nil {
		return result.API(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !nodeidentity.Bound(s.Instance, node) || !s.Released(node) || !nodeidentity.Ready(node) {
		return nil
	}
	state := &s.Session.Renewal
	if p.clock.Now().Before(state.Next) {
		if state.Failure != nil {
			s.Renewal = waitingStill(state.Failure, state.Next.Sub(p.clock.Now()))
		}
		return nil
	}
	if s.Host.MidWork(hostjobs.KindConnect, hostjobs.KindFacts, hostjobs.KindRenew) {
		return nil
	}
	failure := p.renewDue(ctx, s, node, due)
	if failure != nil && failure.Outcome == result.Working {
		return failure
	}
	s.Host.Close() // the next renewal may be far in the future
	if failure == nil {
		*state = scope.Renewal{Next: p.clock.Now().Add(renewalFloor)}
		return nil
	}
	state.Attempts++
	delay := retryDelay(state.Attempts, p.jitter())
	s.Renewal = notRenewed(s.Instance, failure, due, delay)
	state.Next, state.Failure = p.clock.Now().Add(delay), s.Renewal
	return nil
}

// renewDue has the agent create keys and certificate requests, signs the requests, and has the agent install the
// certificates.
func (p renew) renewDue(ctx context.Context, s *scope.Scope, node *corev1.Node, due []string) *result.Result {
	if s.Instance.Status.Host == nil { // the NodeSpec depends on it
		if o := p.inspect(ctx, s); o != nil {
			return o
		}
	}
	spec, err := p.specs.Of(s, node)
	if err != nil {
		return result.Spec(err)
	}
	identities := slices.DeleteFunc(slices.Clone(spec.Identities), func(i nodespec.Identity) bool {
		return !slices.Contains(due, i.Name)
	})
	if len(identities) == 0 {
		identity.Note(&s.Instance.Status, spec, s.Host.Facts, p.clock.Now()) // the node's services no longer need them
		return nil
	}
	if o := p.inspect(ctx, s); o != nil {
		return o
	}
	if o := p.identify.run(ctx, s); o != nil {
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
		return p.failed(s, err)
	}
	if left := identity.Needed(renewed.Left); len(left) > 0 {
		return p.signer.NotTaken(ctx, s, left[0])
	}
	identity.NoteIssued(&s.Instance.Status, renewed.Issued, p.clock.Now())
	return nil
}

// inspect connects to the host and reads its facts.
func (p renew) inspect(ctx context.Context, s *scope.Scope) *result.Result {
	if o := p.reach.run(ctx, s); o != nil {
		return o
	}
	return inspect(ctx, s)
}

// failed returns the result of a renewal that failed on the host or in signing.
func (p renew) failed(s *scope.Scope, err error) *result.Result {
	var refused *identity.RefusedError
	if errors.As(err, &refused) {
		return refused.Result
	}
	var unsigned *hostjobs.UnsignedError
	if errors.As(err, &unsigned) {
		return result.API(v1alpha1.ConditionJoined, "have certificates signed", unsigned.Err)
	}
	return s.Failed(v1alpha1.ConditionUpToDate, err)
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

// notRenewed returns the result for a certificate of a working node that cannot be renewed.
func notRenewed(instance *v1alpha1.WindowsInstance, failure *result.Result, due []string,
	after time.Duration) *result.Result {
	told := *failure
	told.Condition, told.After, told.Outcome = v1alpha1.ConditionUpToDate, after, result.TryAgain
	told.Message = fmt.Sprintf("The certificate of %s%s cannot be renewed: %s", strings.Join(due, " and "),
		expiry(instance, due), failure.Message)
	return &told
}

func expiry(instance *v1alpha1.WindowsInstance, due []string) string {
	for _, certificate := range instance.Status.Certificates {
		if slices.Contains(due, certificate.Name) {
			return ", good until " + certificate.NotAfter.UTC().Format(time.RFC3339) + ","
		}
	}
	return ""
}

// waitingStill returns a copy of a result with another delay.
func waitingStill(failure *result.Result, after time.Duration) *result.Result {
	told := *failure
	told.After = after
	return &told
}

// lookAgain shortens the delay before the next reconcile to the time of the next renewal or revert.
func (p renew) lookAgain(s *scope.Scope, next ctrl.Result) ctrl.Result {
	if s.Instance.Spec.DesiredState != v1alpha1.DesiredStateNode || s.Instance.Spec.Paused {
		return next
	}
	next.RequeueAfter = identity.Sooner(identity.Sooner(next.RequeueAfter, s.PutBackIn), s.AgentCheckIn)
	now := p.clock.Now()
	due, wait := identity.Due(s.Instance.Status.Certificates, now, p.jitter())
	if len(due) > 0 {
		switch retry := s.Session.Renewal.Next.Sub(now); {
		case retry > 0:
			wait = identity.Sooner(wait, retry)
		case s.Result == nil || s.Result.Outcome == result.NothingToDo:
			wait = identity.Sooner(wait, firstRetryDelay) // due since the start of the reconcile
		}
	}
	next.RequeueAfter = identity.Sooner(next.RequeueAfter, wait)
	return next
}
