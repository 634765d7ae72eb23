package audit

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func newEvent(verb, group, resource, subresource, namespace, name string) Event {
	var e Event
	e.Verb, e.Object.APIGroup, e.Object.Resource, e.Object.Subresource = verb, group, resource, subresource
	e.Object.Namespace, e.Object.Name = namespace, name
	return e
}

func TestRights_SplitIntoSmallestParts(t *testing.T) {
	rights := Rights("ns", []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"a", "b/status"}, Verbs: []string{"get", "list"},
			ResourceNames: []string{"x", "y"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"c"}, Verbs: []string{"create"}},
	})
	if len(rights) != 17 {
		t.Fatalf("there are %d: %v", len(rights), rights)
	}
	for i, want := range map[int]string{
		0: "get a named x in its own namespace", 15: "list b/status.apps named y in its own namespace",
		16: "create c in its own namespace",
	} {
		if got := rights[i].String(); got != want {
			t.Errorf("right %d is %q, want %q", i, got, want)
		}
	}
}

func TestUses(t *testing.T) {
	all := Right{Resource: "secrets", Verb: "get"}
	for name, test := range map[string]struct {
		right Right
		event Event
		want  int
	}{
		"the same verb on the same resource uses it": {all, newEvent("get", "", "secrets", "", "a", "b"), 1},
		"another verb does not":                      {all, newEvent("list", "", "secrets", "", "a", ""), 0},
		"another group does not":                     {all, newEvent("get", "apps", "secrets", "", "a", "b"), 0},
		"a subresource does not":                     {all, newEvent("get", "", "secrets", "status", "a", "b"), 0},
		"a right on a subresource is used by it": {Right{Resource: "pods/eviction", Verb: "create"},
			newEvent("create", "", "pods", "eviction", "a", "b"), 1},
		"a right on a subresource is not used by the object": {Right{Resource: "pods/eviction", Verb: "create"},
			newEvent("create", "", "pods", "", "a", "b"), 0},
		"a named one is used by that name": {Right{Resource: "secrets", Verb: "get", Name: "b"},
			newEvent("get", "", "secrets", "", "a", "b"), 1},
		"and not by another": {Right{Resource: "secrets", Verb: "get", Name: "b"},
			newEvent("get", "", "secrets", "", "a", "c"), 0},
		"and not by a list of all": {Right{Resource: "secrets", Verb: "list", Name: "b"},
			newEvent("list", "", "secrets", "", "a", ""), 0},
		"a list by that name, which a selector makes, is one": {Right{Resource: "secrets", Verb: "list", Name: "b"},
			newEvent("list", "", "secrets", "", "a", "b"), 1},
		"a Role's is used in its namespace": {Right{Namespace: "a", Resource: "secrets", Verb: "get"},
			newEvent("get", "", "secrets", "", "a", "b"), 1},
		"and not in another": {Right{Namespace: "a", Resource: "secrets", Verb: "get"},
			newEvent("get", "", "secrets", "", "c", "b"), 0},
		"and not in the whole cluster": {Right{Namespace: "a", Resource: "nodes", Verb: "get"},
			newEvent("get", "", "nodes", "", "", "b"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Uses([]Right{test.right}, []Event{test.event})[test.right]; got != test.want {
				t.Errorf("it is used %d times", got)
			}
		})
	}
	t.Run("a right that is used by nothing is there with 0", func(t *testing.T) {
		if uses, ok := Uses([]Right{all}, nil)[all]; !ok || uses != 0 {
			t.Errorf("%d, there: %t", uses, ok)
		}
	})
	t.Run("a request needs the narrowest right, so that a wide one beside it is unused", func(t *testing.T) {
		own, named := Right{Namespace: "a", Resource: "secrets", Verb: "get"},
			Right{Resource: "secrets", Verb: "get", Name: "b"}
		uses := Uses([]Right{all, own, named}, []Event{
			newEvent("get", "", "secrets", "", "a", "b"), newEvent("get", "", "secrets", "", "c", "b"),
			newEvent("get", "", "secrets", "", "a", "c"),
		})
		if uses[all] != 0 || uses[own] != 2 || uses[named] != 1 {
			t.Errorf("got %v", uses)
		}
	})
}

func TestImplied_ObjectCreatedByPatch(t *testing.T) {
	created, changed := newEvent("patch", "", "secrets", "", "a", "b"), newEvent("patch", "", "secrets", "", "a", "b")
	created.Response.Code, changed.Response.Code = 201, 200
	implied := Implied([]Event{changed, created, newEvent("create", "", "secrets", "", "a", "c")})
	if len(implied) != 1 || implied[0].Verb != "create" || implied[0].Object.Name != "b" {
		t.Errorf("got %+v", implied)
	}
}
