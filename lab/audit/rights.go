package audit

import (
	"fmt"
	"net/http"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is the smallest part of a rule of RBAC: one verb on one resource, of one name if the rule has names.
type Right struct {
	// Namespace is the one that a Role holds in; "" for a ClusterRole that a ClusterRoleBinding gives.
	Namespace             string
	Group, Resource, Verb string
	// Name is empty for all objects.
	Name string
}

// String says the right as its marker does.
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

// Rights are what rules give. namespace is "" for those of a ClusterRole. A rule that is for no resource, such as a
// path, gives none.
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

// allows reports whether the right is enough for a request. Rules with a wildcard are not understood: no Role of ours
// has one.
func (r Right) allows(e Event) bool {
	return r.Verb == e.Verb && r.Group == e.Object.APIGroup && r.Resource == e.Resource() &&
		(r.Name == "" || r.Name == e.Object.Name) && (r.Namespace == "" || r.Namespace == e.Object.Namespace)
}

// narrowness orders rights that are enough for the same request: the smaller one is what the request needs.
func (r Right) narrowness() int {
	n := 0
	if r.Namespace != "" {
		n += 2
	}
	if r.Name != "" {
		n++
	}
	return n
}

// Implied returns further rights that RBAC checks: a client that makes an object by a patch, as an apply does, must be
// allowed to create it.
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

// Uses counts for each right the requests that needed it. A request needs the narrowest sufficient right: a request
// that a Role allows does not use a right for the whole cluster.
func Uses(rights []Right, events []Event) map[Right]int {
	uses := map[Right]int{}
	for _, right := range rights {
		uses[right] = 0
	}
	for _, event := range events {
		best := -1
		for i, right := range rights {
			if right.allows(event) && (best < 0 || right.narrowness() > rights[best].narrowness()) { //nolint:gosec // G602: best is an index of rights
				best = i
			}
		}
		if best >= 0 {
			uses[rights[best]]++
		}
	}
	return uses
}
