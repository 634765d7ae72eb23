package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy"
)

// NodePool holds the nodes for one decision about disruptions, with their pools and the present disturbances.
type NodePool struct {
	// Nodes are all that are or were in service. An instance with an entry in Disruptions is among them as long as it
	// exists, also when its Node is not there at the moment (it is not Ready then): an entry in place whose instance is
	// not here has ended.
	Nodes []Node
	// MachineSets are all that have Windows Machines or entries in Disruptions. An entry whose MachineSet is not here has
	// ended.
	MachineSets []MachineSet
	Disruptions []v1alpha1.Disruption
}

// Node is a Windows node that is or was in service: an instance with a Node that takes or has taken pods.
type Node struct {
	Instance string
	UID      types.UID
	Node     string
	// Pool is as in WindowsDisruptionPolicy.spec.pools.
	Pool string
	// Version is the operator's that has proven it.
	Version string
	// Configuration identifies the settings that the node was proven with; empty when that is not known.
	Configuration string
	// Ready is true while the node works and takes pods as far as the operator is concerned, and Since when that last
	// changed, by the clocks of the operator and the API server. The reader leaves Since zero when only the host knows it;
	// Observe fills it in.
	Ready bool
	Since time.Time
	// Reported is when the kubelet says that it last changed, by the host's clock. It is only compared with itself.
	Reported *metav1.Time
	// Cordoned is true while the node takes no new pods, whoever asked for that.
	Cordoned bool
	// Gone is true for a host that is known to be gone: its Machine has failed or is being deleted by others, or an
	// administrator has said so.
	Gone bool
	// Failure is its last change, if that has failed.
	Failure *v1alpha1.FailedChange
}

// MachineSet is a MachineSet with the facts of its Machines.
type MachineSet struct {
	// Name is the MachineSet's; its pool is MachineSet/<name>.
	Name string
	// Replicas is how many there are to be, and Running how many run and have a Ready node in service.
	Replicas, Running int
	// Missing is how many there are too few of, or are being made or deleted, also by the operator. Machines that have
	// failed are not among them.
	Missing int
	// Failed is how many Machines have failed.
	Failed int
	// Staying are the names of the Machines that are there and not being deleted, failed ones too. A Machine with an entry
	// that is not among them is one of the missing, and not counted twice.
	Staying []string
	// Leaving are the Machines that are being deleted and are still there.
	Leaving []LeavingMachine
}

// LeavingMachine is a Machine that is being deleted. Why is the Machine's own statement of what the Machine API waits
// for, above all pods that a PodDisruptionBudget keeps. It is empty if the Machine states nothing.
type LeavingMachine struct {
	Name, Why string
}

func first[T any](list []T, is func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return found, false
}

// standingDisruption is an entry of status.disruptions, and until when it counts.
type standingDisruption struct {
	v1alpha1.Disruption
	until time.Time
}

// describe says what is done to the node: "Node win-a (MachineSet/workers) is being upgraded".
func (d standingDisruption) describe() string {
	name := Node{Instance: d.Instance, Node: d.Node, Pool: d.Pool}.describe()
	if d.Machine != "" {
		return fmt.Sprintf("%s is being replaced (since %s)", name, moment(d.Since.Time))
	}
	what := map[v1alpha1.DisruptionCause]string{
		v1alpha1.CauseUpgrade:       "upgraded",
		v1alpha1.CauseConfiguration: "reconfigured",
		v1alpha1.CauseReboot:        "restarted",
		v1alpha1.CauseKeyChange:     "given another SSH key",
		v1alpha1.CauseRepair:        "repaired",
		v1alpha1.CauseRemoval:       "removed",
	}[d.Cause]
	if what == "" {
		what = "changed"
	}
	return fmt.Sprintf("%s is being %s (since %s)", name, what, moment(d.Since.Time))
}

func (n Node) describe() string {
	if n.Pool == "" {
		return "Node " + n.name()
	}
	return fmt.Sprintf("Node %s (%s)", n.name(), n.Pool)
}

func (n Node) name() string {
	if n.Node == "" {
		return n.Instance
	}
	return n.Node
}

// failureText is why a change failed, as a sentence.
func failureText(f v1alpha1.FailedChange) string {
	text := strings.TrimSpace(f.Message)
	if text == "" {
		text = f.Reason
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// moment writes a time for administrators.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// soaked reports whether the node has been Ready for canarySoak.
func (n Node) soaked(settings Settings, now time.Time) bool {
	return n.Ready && !n.Gone && now.Sub(n.Since) >= settings.CanarySoak
}

// overdue reports whether the node is not Ready for longer than it may be.
func (n Node) overdue(settings Settings, now time.Time) bool {
	return !n.Ready && !n.Gone && now.Sub(n.Since) >= settings.FailureDeadline
}

// listSome enumerates at most three.
func listSome(words []string) string {
	const named = 3
	if more := len(words) - named; more > 0 {
		words = append(slices.Clone(words[:named]), fmt.Sprintf("%d more", more))
	}
	return policy.Enumerate(words)
}
