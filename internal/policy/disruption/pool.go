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

// NodePool holds the nodes for one disruption decision, with their pools and the current disruptions.
type NodePool struct {
	// Nodes are all nodes that are or were in service. An existing instance with an entry in Disruptions is included
	// even while its Node does not exist (the instance then counts as not Ready). An in-place entry has ended if its
	// instance is missing here.
	Nodes []Node
	// MachineSets are all that have Windows Machines or entries in Disruptions. An entry has ended if its MachineSet
	// is missing here.
	MachineSets []MachineSet
	Disruptions []v1alpha1.Disruption
}

// Node is a Windows node that is or was in service: an instance with a Node that accepts or accepted pods.
type Node struct {
	Instance string
	UID      types.UID
	Node     string
	// Pool is a pool name as in WindowsDisruptionPolicy.spec.pools.
	Pool string
	// Version is the version of the operator that verified the node.
	Version string
	// Configuration identifies the settings used when the node was verified; empty if not known.
	Configuration string
	// Ready is true while the node works and the operator lets the node accept pods. Since is the time of the last
	// change of Ready, by the clocks of the operator and the API server. The reader leaves Since zero when only the
	// host knows the time; Observe then sets Since.
	Ready bool
	Since time.Time
	// Reported is the time of the last change that the kubelet reports, by the host's clock. It is compared only with
	// other times of the same kubelet.
	Reported *metav1.Time
	// Cordoned is true while the node accepts no new pods, regardless of the client that cordoned it.
	Cordoned bool
	// Gone is true if the host is known to no longer exist: its Machine has failed or is being deleted by another
	// client, or an administrator has declared the host gone.
	Gone bool
	// Failure is the last change, if that change failed.
	Failure *v1alpha1.FailedChange
}

// MachineSet is a MachineSet with the facts of its Machines.
type MachineSet struct {
	// Name is the name of the MachineSet; its pool is MachineSet/<name>.
	Name string
	// Replicas is the desired number of Machines, and Running the number that run and have a Ready node in service.
	Replicas, Running int
	// Missing is the number of Machines that are lacking, being created or being deleted, also by the operator.
	// Failed Machines are not included.
	Missing int
	// Failed is the number of failed Machines.
	Failed int
	// Staying are the names of the existing Machines that are not being deleted, including failed ones. A Machine
	// that has an entry but is not in Staying is already part of Missing and must not be counted twice.
	Staying []string
	// Leaving are the Machines that still exist but are being deleted.
	Leaving []LeavingMachine
}

// LeavingMachine is a Machine that is being deleted. Why is the cause of the delay from the Machine's status, above
// all pods that a PodDisruptionBudget protects. It is empty if the status has no cause.
type LeavingMachine struct {
	Name, Why string
}

func findFirst[T any](list []T, is func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return found, false
}

// timedDisruption is an entry of status.disruptions with the time when it stops counting.
type timedDisruption struct {
	v1alpha1.Disruption
	until time.Time
}

// describeDisruption returns the disruption in words: "Node win-a (MachineSet/workers) is being upgraded".
func (d timedDisruption) describeDisruption() string {
	name := Node{Instance: d.Instance, Node: d.Node, Pool: d.Pool}.describeWithPool()
	if d.Machine != "" {
		return fmt.Sprintf("%s is being replaced (since %s)", name, formatTime(d.Since.Time))
	}
	what := map[v1alpha1.DisruptionCause]string{
		v1alpha1.CauseUpgrade:       "upgraded",
		v1alpha1.CauseConfiguration: "reconfigured",
		v1alpha1.CauseReboot:        "restarted",
		v1alpha1.CauseKeyChange:     "given a new SSH key",
		v1alpha1.CauseRepair:        "repaired",
		v1alpha1.CauseRemoval:       "removed",
	}[d.Cause]
	if what == "" {
		what = "changed"
	}
	return fmt.Sprintf("%s is being %s (since %s)", name, what, formatTime(d.Since.Time))
}

func (n Node) describeWithPool() string {
	if n.Pool == "" {
		return "Node " + n.displayName()
	}
	return fmt.Sprintf("Node %s (%s)", n.displayName(), n.Pool)
}

func (n Node) displayName() string {
	if n.Node == "" {
		return n.Instance
	}
	return n.Node
}

// failureText returns the reason of a failed change as a sentence.
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

// formatTime formats a time for administrators.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// hasSoaked reports whether the node has been Ready for canarySoak.
func (n Node) hasSoaked(settings Settings, now time.Time) bool {
	return n.Ready && !n.Gone && now.Sub(n.Since) >= settings.CanarySoak
}

// isOverdue reports whether the node has not been Ready for failureDeadline or longer.
func (n Node) isOverdue(settings Settings, now time.Time) bool {
	return !n.Ready && !n.Gone && now.Sub(n.Since) >= settings.FailureDeadline
}

// listSome enumerates at most three of the words.
func listSome(words []string) string {
	const named = 3
	if more := len(words) - named; more > 0 {
		words = append(slices.Clone(words[:named]), fmt.Sprintf("%d more", more))
	}
	return policy.Enumerate(words)
}
