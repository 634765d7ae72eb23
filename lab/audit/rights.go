package audit

import (
	"fmt"
	"net/http"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is the smallest part of an RBAC rule: one verb on one resource, for one name if the rule has names.
type Right struct {
	// Namespace is the namespace of a Role; "" for a ClusterRole with a ClusterRoleBinding.
	Namespace             string
	Group, Resource, Verb string
	// Name is empty for all objects.
	Name string
}

// String formats the right like its marker.
func (r Right) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Verb, r.Resource)
	if r.Group != "" {
		fmt.Fprintf(&b, ".%s", r.Group)
	}
	if r.Name != "" {
		fmt.Fprintf(&b, " named %s", r.Name)
	}
	if r.Namespace != "" {
		b.WriteString(" in its own namespace")
	}
	return b.String()
}

// Rights returns the rights of rules. namespace is "" for a ClusterRole. A rule without resources, such as a
// rule for paths, yields none.
func Rights(namespace string, rules []rbacv1.PolicyRule) []Right {
	var rights []Right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights = append(rights, Right{Namespace: namespace, Group: group, Resource: resource, Verb: verb, Name: name})
					}
				}
			}
		}
	}
	return rights
}

// isSufficientFor reports whether the right is sufficient for a request. Wildcards are not supported: no Role of the
// product contains one.
func (r Right) isSufficientFor(e Event) bool {
	return r.Verb == e.Verb && r.Group == e.Object.APIGroup && r.Resource == e.Resource() &&
		(r.Name == "" || r.Name == e.Object.Name) && (r.Namespace == "" || r.Namespace == e.Object.Namespace)
}

// narrownessRank orders rights that are sufficient for the same request: the narrower right is needed.
func (r Right) narrownessRank() int {
	n := 0
	if r.Namespace != "" {
		n += 2
	}
	if r.Name != "" {
		n++
	}
	return n
}

// Implied returns further requests that RBAC checks: a client that creates an object by a patch, as an apply
// does, must be allowed to create it.
func Implied(events []Event) []Event {
	var implied []Event
	for _, event := range events {
		if event.Verb == "patch" && event.Response.Code == http.StatusCreated {
			event.Verb = "create"
			implied = append(implied, event)
		}
	}
	return implied
}

// Uses counts the requests that needed each right. A request needs the narrowest sufficient right: a request
// that a Role allows does not use a cluster-wide right.
func Uses(rights []Right, events []Event) map[Right]int {
	uses := map[Right]int{}
	for _, right := range rights {
		uses[right] = 0
	}
	for _, event := range events {
		best := -1
		for i, right := range rights {
			if right.isSufficientFor(event) && (best < 0 || right.narrownessRank() > rights[best].narrownessRank()) { //nolint:gosec // G602: best is an index of rights
				best = i
			}
		}
		if best >= 0 {
			uses[rights[best]]++
		}
	}
	return uses
}
