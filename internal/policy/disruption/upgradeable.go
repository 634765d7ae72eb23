package disruption

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// ReasonKubeletsTooOld is a reason of the condition Upgradeable of an OperatorCondition.
const ReasonKubeletsTooOld = "KubeletsTooOld"

// maxKubeletSkew is the maximum number of minor versions that a kubelet may lag behind the API server:
// https://kubernetes.io/releases/version-skew-policy/#kubelet
const maxKubeletSkew = 3

// Kubelet is the kubelet version of a Windows node, from its Node.
type Kubelet struct {
	Node, Version string
}

// Upgradeable decides whether OLM may replace the operator. An upgrade is refused while a disruption is in progress
// and within its deadline. It is also refused while an upgrade of the cluster by one minor version would leave
// kubelets unsupported by the new API server. Waiting, paused and failed nodes do not prevent an upgrade of the
// operator, because the release that fixes such nodes must be installable. An unreadable version does not prevent an
// upgrade either.
func Upgradeable(
	pool NodePool, settings Settings, kubelets []Kubelet, server string, now time.Time,
) Decision {
	s := &upgradeInput{newDecisionInput(pool, Request{}, settings, now), kubelets, server}
	const allowed = "No Windows node is being disrupted, and all kubelets would be supported in the next minor version of Kubernetes."
	decision := policy.Decide(s, allowed, []policy.Check[*upgradeInput]{
		{Name: "DisruptionInProgress", Reason: v1alpha1.ReasonDisruptionInProgress, Violation: disruptionInProgress},
		{Name: "KubeletsTooOld", Reason: ReasonKubeletsTooOld, Violation: kubeletsTooOld},
	})
	if decision.Allowed {
		return Decision{Decision: decision}
	}
	return Decision{Decision: decision, After: s.retryDelay()}
}

type upgradeInput struct {
	*decisionInput
	kubelets []Kubelet
	server   string
}

func disruptionInProgress(s *upgradeInput) string {
	if len(s.entries) == 0 {
		return ""
	}
	var words []string
	for _, d := range s.entries {
		words = append(words, d.describeDisruption())
		s.retryAt(d.until)
	}
	return fmt.Sprintf("%s. The operator can be upgraded when that is done, or at %s at the latest.", listSome(words),
		formatTime(s.lastUntil()))
}

func (s *upgradeInput) lastUntil() time.Time {
	var last time.Time
	for _, d := range s.entries {
		if d.until.After(last) {
			last = d.until
		}
	}
	return last
}

func kubeletsTooOld(s *upgradeInput) string {
	server, err := version.ParseGeneric(s.server)
	if err != nil {
		return ""
	}
	oldest := version.MajorMinor(server.Major(), server.Minor()+1-min(maxKubeletSkew, server.Minor()+1))
	var tooOld []string
	for _, k := range s.kubelets {
		if v, err := version.ParseGeneric(k.Version); err == nil && v.LessThan(oldest) {
			tooOld = append(tooOld, fmt.Sprintf("node %s has kubelet %s", k.Node, k.Version))
		}
	}
	if len(tooOld) == 0 {
		return ""
	}
	return fmt.Sprintf("After an upgrade of the cluster to Kubernetes %d.%d, kubelets older than %s are not supported: %s. Upgrade or remove these nodes first.",
		server.Major(), server.Minor()+1, oldest, listSome(tooOld))
}
