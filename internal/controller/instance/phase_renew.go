package instance

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/certificates"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/link"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/instance/status"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// renew is the phase that renews certificates.
type renew struct {
	link   *link.Link
	status status.Writer
	nodes  nodes.Nodes
	specs  desired.Specs
	signer certificates.Signer
	// identify stops at the host of another node.
	identify identify
	clock    clock.PassiveClock
	jitter   func() float64
}

// renewalFloor is the least time between two renewals that succeed. A signer may give a certificate that is to be
// renewed at once, or soon.
const renewalFloor = time.Minute

// run gives services of a node that works new certificates before theirs expire. It asks no gate and waits for no
// window: nothing is restarted, and what else is to be changed on the host stays as it is. A failure delays nothing
// else, and is reported where nothing else is to be reported. A node that does not work gets what it lacks on the way
// that brings it back.
func (p renew) run(ctx context.Context, s *scope.Scope) *obstacle.Obstacle {
	due, _ := certificates.Due(s.Instance.Status.Certificates, p.clock.Now(), 0)
	if len(due) == 0 || s.Instance.Status.SpecDigest == "" {
		s.Session.Renewal = scope.Renewal{Next: s.Session.Renewal.Next}
		return nil
	}
	node, err := p.nodes.Of(ctx, s.Instance)
	if err != nil {
		return obstacle.API(v1alpha1.ConditionReady, "read the Node", err)
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
	failure := p.renewDue(ctx, s, node, due)
	if ctx.Err() != nil {
		return failure // the operator ends
	}
	p.link.LetGo(s) // what comes next may be long after
	if failure == nil {
		*state = scope.Renewal{Next: p.clock.Now().Add(renewalFloor)}
		if err := p.status.Patch(ctx, s); err != nil {
			return obstacle.API(v1alpha1.ConditionUpToDate, "note that certificates were renewed", err)
		}
		return nil
	}
	state.Attempts++
	delay := retryDelay(state.Attempts, p.jitter())
	s.Renewal = notRenewed(s.Instance, failure, due, delay)
	state.Next, state.Failure = p.clock.Now().Add(delay), s.Renewal
	return nil
}

// renewDue has the agent make keys and requests, has these signed, and has the certificates put in place.
func (p renew) renewDue(ctx context.Context, s *scope.Scope, node *corev1.Node, due []string) *obstacle.Obstacle {
	spec, err := p.specs.Of(s, node)
	if err != nil {
		return obstacle.Spec(err)
	}
	identities := slices.DeleteFunc(slices.Clone(spec.Identities), func(i nodespec.Identity) bool {
		return !slices.Contains(due, i.Name)
	})
	if len(identities) == 0 {
		certificates.Note(&s.Instance.Status, spec, s.Session.Facts, p.clock.Now()) // the node's services need them no more
		return nil
	}
	if o := p.link.Reach(ctx, s); o != nil {
		return o
	}
	if o := p.link.Inspect(ctx, s); o != nil {
		return o
	}
	if o := p.identify.run(ctx, s); o != nil {
		return o
	}
	var names []string
	for _, identity := range identities {
		names = append(names, "--identity", identity.Name)
	}
	line, err := p.link.Run(ctx, s, verb.Renew, names...)
	if err != nil {
		return p.link.Failed(s, v1alpha1.ConditionUpToDate, err)
	}
	issued := map[string]string{}
	for _, identity := range identities {
		certificate, o := p.signer.Issue(ctx, s, identity, line.Result.Facts)
		if o != nil {
			return o
		}
		issued[identity.Name] = string(certificate)
	}
	line, err = p.link.Run(ctx, s, verb.Renew, append(names, certificateArguments(issued)...)...)
	if err != nil {
		return p.link.Failed(s, v1alpha1.ConditionUpToDate, err)
	}
	if left := certificates.Needed(*line.Result.Plan); len(left) > 0 {
		return p.signer.NotTaken(ctx, s, left[0])
	}
	certificates.NoteIssued(&s.Instance.Status, issued, p.clock.Now())
	return nil
}

// certificateArguments are certificates in PEM, by the names of their identities, as words in which no shell finds
// anything to change: their DER form in base64url.
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

// notRenewed is what an administrator reads while a certificate cannot be renewed of a node that works.
func notRenewed(instance *v1alpha1.WindowsInstance, failure *obstacle.Obstacle, due []string,
	after time.Duration) *obstacle.Obstacle {
	told := *failure
	told.Condition, told.After, told.Outcome = v1alpha1.ConditionUpToDate, after, obstacle.TryAgain
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

// waitingStill returns an obstacle that is looked at again after another time.
func waitingStill(failure *obstacle.Obstacle, after time.Duration) *obstacle.Obstacle {
	told := *failure
	told.After = after
	return &told
}

// lookAgain brings the next look forward to when certificates are to be renewed, or something is to be put back.
func (p renew) lookAgain(s *scope.Scope, result ctrl.Result) ctrl.Result {
	if s.Instance.Spec.DesiredState != v1alpha1.DesiredStateNode || s.Instance.Spec.Paused {
		return result
	}
	result.RequeueAfter = certificates.Sooner(certificates.Sooner(result.RequeueAfter, s.PutBackIn), s.AgentCheckIn)
	now := p.clock.Now()
	due, next := certificates.Due(s.Instance.Status.Certificates, now, p.jitter())
	if len(due) > 0 {
		switch retry := s.Session.Renewal.Next.Sub(now); {
		case retry > 0:
			next = certificates.Sooner(next, retry)
		case s.Obstacle == nil || s.Obstacle.Outcome == obstacle.NothingToDo:
			next = certificates.Sooner(next, firstRetryDelay) // it became due on the way
		}
	}
	result.RequeueAfter = certificates.Sooner(result.RequeueAfter, next)
	return result
}
