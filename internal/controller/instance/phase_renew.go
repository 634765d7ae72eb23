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

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/ownership"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// renewalFloor is the least time between two renewals that succeed. A signer may give a certificate that is to be renewed at once, or soon.
const renewalFloor = time.Minute

// renewal is how it stands with certificates that are to be renewed.
type renewal struct {
	// attempts counts failures in a row; the next attempt is not before next.
	attempts int
	next     time.Time
	// failure is that of the last attempt; nil when it succeeded.
	failure *obstacle
}

// renewCertificates gives services of a node that works new certificates before theirs expire. It asks no gate and waits for no window:
// nothing is restarted, and what else is to be changed on the host stays as it is. A failure holds nothing else up, and is told where
// nothing else is to be told. A node that does not work gets what it lacks on the way that brings it back.
func (r *Reconciler) renewCertificates(ctx context.Context, s *scope) *obstacle {
	due, _ := dueCertificates(s.instance.Status.Certificates, r.Clock.Now(), 0)
	if len(due) == 0 || s.instance.Status.SpecDigest == "" {
		s.session.renewal = renewal{next: s.session.renewal.next}
		return nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return apiObstacle(v1alpha1.ConditionReady, "read the Node", err)
	}
	if node == nil || !ownership.Bound(s.instance, node) || !s.released(node) || !isReady(node) {
		return nil
	}
	state := &s.session.renewal
	if r.Clock.Now().Before(state.next) {
		if state.failure != nil {
			s.renewal = waitingStill(state.failure, state.next.Sub(r.Clock.Now()))
		}
		return nil
	}
	failure := r.renew(ctx, s, node.Annotations[v1alpha1.AnnotationPodSubnet], due)
	if ctx.Err() != nil {
		return failure // the operator ends
	}
	s.endRenewal()
	if failure == nil {
		*state = renewal{next: r.Clock.Now().Add(renewalFloor)}
		if err := s.patchStatus(ctx); err != nil {
			return apiObstacle(v1alpha1.ConditionUpToDate, "note that certificates were renewed", err)
		}
		return nil
	}
	state.attempts++
	delay := retryDelay(state.attempts, r.Jitter())
	s.renewal = notRenewed(s.instance, failure, due, delay)
	state.next, state.failure = r.Clock.Now().Add(delay), s.renewal
	return nil
}

// renew has the agent make keys and requests, has these signed, and has the certificates put in place.
func (r *Reconciler) renew(ctx context.Context, s *scope, subnet string, due []string) *obstacle {
	spec, err := s.desired(subnet)
	if err != nil {
		return specObstacle(err)
	}
	identities := slices.DeleteFunc(slices.Clone(spec.Identities), func(i nodespec.Identity) bool { return !slices.Contains(due, i.Name) })
	if len(identities) == 0 {
		s.noteCertificates(spec) // the node's services need them no more
		return nil
	}
	if o := r.reach(ctx, s); o != nil {
		return o
	}
	if o := r.inspect(ctx, s); o != nil {
		return o
	}
	var names []string
	for _, identity := range identities {
		names = append(names, "--identity", identity.Name)
	}
	line, err := s.run(ctx, verb.Renew, names...)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionUpToDate, err)
	}
	certificates := map[string]string{}
	for _, identity := range identities {
		certificate, o := s.issue(ctx, identity, line.Result.Facts)
		if o != nil {
			return o
		}
		certificates[identity.Name] = string(certificate)
	}
	line, err = s.run(ctx, verb.Renew, append(names, certificateArguments(certificates)...)...)
	if err != nil {
		return s.hostFailed(v1alpha1.ConditionUpToDate, err)
	}
	if left := neededCertificates(*line.Result.Plan); len(left) > 0 {
		return s.certificateNotTaken(ctx, left[0])
	}
	s.noteIssued(certificates)
	return nil
}

// certificateArguments are certificates in PEM, by the names of their identities, as words in which no shell finds anything to change: their DER
// form in base64url.
func certificateArguments(certificates map[string]string) []string {
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(certificates)) {
		var chain []byte
		for block, rest := pem.Decode([]byte(certificates[name])); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "CERTIFICATE" {
				chain = append(chain, block.Bytes...)
			}
		}
		arguments = append(arguments, "--identity-certificate", name+":"+base64.RawURLEncoding.EncodeToString(chain))
	}
	return arguments
}

// endRenewal lets the connection go. What comes next may be long after.
func (s *scope) endRenewal() {
	if s.connection != nil {
		s.Hosts.Release(s.connection)
		s.connection = nil
	}
	s.session.forgetHost()
	s.Hosts.Close(s.instance.Name)
}

// notRenewed is what an administrator reads while a certificate cannot be renewed of a node that works.
func notRenewed(instance *v1alpha1.WindowsInstance, failure *obstacle, due []string, after time.Duration) *obstacle {
	told := *failure
	told.condition, told.after, told.outcome = v1alpha1.ConditionUpToDate, after, tryAgain
	told.message = fmt.Sprintf("The certificate of %s%s cannot be renewed: %s", strings.Join(due, " and "), expiry(instance, due), failure.message)
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

// waitingStill is an obstacle that is looked at again after another time.
func waitingStill(failure *obstacle, after time.Duration) *obstacle {
	told := *failure
	told.after = after
	return &told
}
