package robustness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Kinds of objects with a judged history.
const (
	kindNode     = "Node"
	kindInstance = "WindowsInstance"
	kindPolicy   = "WindowsDisruptionPolicy"
	kindRequest  = "CertificateSigningRequest"
	kindPod      = "Pod"
)

func followedKinds(namespace string) []*testenv.FollowedKind {
	in := []client.ListOption{client.InNamespace(namespace)}
	return []*testenv.FollowedKind{
		{Name: kindNode, List: func() client.ObjectList { return &corev1.NodeList{} }},
		{Name: kindInstance, List: func() client.ObjectList { return &v1alpha1.WindowsInstanceList{} }, Options: in},
		{Name: kindPolicy, List: func() client.ObjectList { return &v1alpha1.WindowsDisruptionPolicyList{} }, Options: in},
		{Name: kindPod, List: func() client.ObjectList { return &corev1.PodList{} },
			Options: []client.ListOption{client.InNamespace(workloadNamespace)}},
		{Name: kindRequest, List: func() client.ObjectList { return &certificatesv1.CertificateSigningRequestList{} }},
	}
}

// Evidence is the input for judging the rules that always hold.
type Evidence struct {
	// Changes are the changes of objects of the followed kinds, in the order of the API server's store.
	Changes []testenv.Change
	// Requests are the answered requests to the API server.
	Requests []audit.Event
	// Restarts are the requested restarts of Windows.
	Restarts []Restart
	// Verbs are the agent commands that operators have run on hosts, and PodDisruptions their effects on pods.
	Verbs          []Verb
	PodDisruptions []PodDisruption
	// FaultsEnd is the revision when all faults have ended; afterwards administrators only fix the consequences.
	FaultsEnd uint64
	// Operator is the user name of the operator.
	Operator string
	// Hosts are the hosts by the name of their Node.
	Hosts map[string]Host
}

// Host holds the facts of a host that do not come from the host itself.
type Host struct {
	// Names and Addresses are all names and addresses of the host so far, and HostKeys all fingerprints; empty if
	// unknown.
	Names, Addresses, HostKeys []string
}

// Restart is a restart of a host, by the name of its Node.
type Restart struct {
	Node string
	At   time.Time
}

// Violation is a violation of a rule.
type Violation struct {
	// Rule is the violated rule, and What describes the case.
	Rule, What string
}

func (v Violation) String() string { return v.Rule + ": " + v.What }

// rules are the rules that hold at any time, regardless of the events.
var rules = []struct {
	sentence   string
	violations func(Evidence) []string
}{
	{"no more nodes are disturbed than the policy allows", (Evidence).excessDisruptions},
	{"a node in service is made unschedulable only with an entry in the policy's status", (Evidence).ungatedCordons},
	{"a host in service restarts only with an entry in the policy's status", (Evidence).restartedUngated},
	{"no pod lives through the restart of a node that was to be drained", (Evidence).restartedUndrained},
	{"no verb disturbs pods that can be evicted on a node in service, unless the drain has timed out", (Evidence).undrainedDisruptions},
	{"verbs of one operator do not overlap on a host", (Evidence).overlappingVerbs},
	{"a name is confirmed for one instance at a time", (Evidence).namedTwice},
	{"a pinned host key is one of the host's", (Evidence).foreignHostKeys},
	{"a changed host key is taken only when an administrator has accepted it", (Evidence).unacceptedHostKeys},
	{"a certificate has names and addresses of its host only", (Evidence).foreignCertificates},
	{"an instance that is not Ready has a reason and a next action", (Evidence).missingMessages},
	{"the operator writes to no Node of another", (Evidence).foreignNodes},
	{"an instance does not lose Ready again and again while nobody does anything", (Evidence).readyLosses},
}

// Judge returns the violations, at most three for each rule.
func Judge(e Evidence) (violations []Violation) {
	slices.SortStableFunc(e.Changes, func(x, y testenv.Change) int { return cmp.Compare(x.Revision, y.Revision) })
	for _, rule := range rules {
		for i, what := range rule.violations(e) {
			if i == 3 {
				break
			}
			violations = append(violations, Violation{rule.sentence, what})
		}
	}
	return violations
}

// state is the content of the API server at one moment.
type state struct {
	nodes     map[string]*corev1.Node
	pods      map[string]*corev1.Pod
	instances map[string]*v1alpha1.WindowsInstance
	policy    *v1alpha1.WindowsDisruptionPolicy
}

func newState() *state {
	return &state{nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, instances: map[string]*v1alpha1.WindowsInstance{}}
}

// replayChanges calls visit with each change and the state before the change.
func (e Evidence) replayChanges(visit func(before *state, c testenv.Change)) {
	s := newState()
	for _, c := range e.Changes {
		visit(s, c)
		s.apply(c)
	}
}

// visitStates calls look with each state that existed at any moment in the interval, both ends included. This also
// covers a state that began long before, or that was the last one.
func (e Evidence) visitStates(from, to time.Time, visit func(*state)) {
	s := newState()
	for i, c := range e.Changes {
		if c.At.After(to) {
			return
		}
		if s.apply(c); i+1 == len(e.Changes) || e.Changes[i+1].At.After(from) {
			visit(s)
		}
	}
}

func (s *state) apply(c testenv.Change) {
	switch object := c.Object.(type) {
	case *corev1.Node:
		s.nodes[c.Name] = object
	case *corev1.Pod:
		s.pods[c.Name] = object
	case *v1alpha1.WindowsInstance:
		s.instances[c.Name] = object
	case *v1alpha1.WindowsDisruptionPolicy:
		s.policy = object
	case nil:
		switch c.Kind {
		case kindNode:
			delete(s.nodes, c.Name)
		case kindPod:
			delete(s.pods, c.Name)
		case kindInstance:
			delete(s.instances, c.Name)
		case kindPolicy:
			s.policy = nil
		}
	}
}

// hasInstance reports whether the instance of an entry still exists, and was not recreated.
func (s *state) hasInstance(d v1alpha1.Disruption) bool {
	for _, instance := range s.instances {
		if instance.UID == d.InstanceUID {
			return true
		}
	}
	return false
}

// hasEntry reports whether a Node has an entry in the policy's status.
func (s *state) hasEntry(node string) bool {
	return s.policy != nil && slices.ContainsFunc(s.policy.Status.Disruptions, func(d v1alpha1.Disruption) bool { return d.Node == node })
}

func formatPosition(c testenv.Change) string {
	return fmt.Sprintf("revision %d, %s", c.Revision, c.At.UTC().Format("15:04:05.000"))
}
