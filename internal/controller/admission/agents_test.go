package admission_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/admission"
)

const (
	ownNode   = "win-a"
	otherNode = "win-b"
)

// agent is a client with the certificate of the agent on a node.
func (f *fixture) agent(node string) client.Client {
	f.Helper()
	return f.as(v1alpha1.AgentUserPrefix+node, v1alpha1.AgentsGroup)
}

func reportOf(namespace, node string) *v1alpha1.WindowsNodeReport {
	return &v1alpha1.WindowsNodeReport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node}}
}

// A stolen agent: its certificate in the hands of somebody who tries everything.
func TestAnAgentMayWriteItsReportAndNothingElse(t *testing.T) {
	f := newFixture(t, "")
	f.create(reportOf(f.namespace, ownNode), reportOf(f.namespace, otherNode))
	stolen := f.agent(ownNode)
	ctx := t.Context()
	f.mayReport(ownNode)

	t.Run("its own report", func(t *testing.T) {
		must(t, stolen.Status().Patch(ctx, reportOf(f.namespace, ownNode), merge(`{"status": {"state": "InSync", "agentVersion": "12.0.0"}}`)))
		found := reportOf(f.namespace, ownNode)
		must(t, f.admin.Get(ctx, client.ObjectKeyFromObject(found), found))
		if found.Status.State != v1alpha1.NodeReportInSync || found.Status.AgentVersion != "12.0.0" {
			t.Errorf("the report says %+v", found.Status)
		}
	})
	t.Run("not what else there is of its report", func(t *testing.T) {
		before := reportOf(f.namespace, ownNode)
		must(t, f.admin.Get(ctx, client.ObjectKeyFromObject(before), before))
		must(t, stolen.Status().Patch(ctx, reportOf(f.namespace, ownNode), merge(
			`{"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["windows/stay"],
			"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "y"}]}, "status": {"message": "hello"}}`)))
		after := reportOf(f.namespace, ownNode)
		must(t, f.admin.Get(ctx, client.ObjectKeyFromObject(after), after))
		if after.Status.Message != "hello" || len(after.Labels)+len(after.Annotations)+len(after.Finalizers)+len(after.OwnerReferences) != 0 {
			t.Errorf("the report is now %+v, and was %+v", after, before)
		}
		if err := stolen.Patch(ctx, reportOf(f.namespace, ownNode), merge(`{"metadata": {"labels": {"a": "b"}}}`)); !apierrors.IsForbidden(err) {
			t.Errorf("labels beside the status: %v", err)
		}
	})
	t.Run("not the report of another node", func(t *testing.T) {
		err := stolen.Status().Patch(ctx, reportOf(f.namespace, otherNode), merge(`{"status": {"state": "Drifted"}}`))
		refused(t, err, admission.Agents)
		if !strings.Contains(err.Error(), "of its own node, and of no other") {
			t.Errorf("it is not told why: %v", err)
		}
	})
	t.Run("not a report that is not there", func(t *testing.T) {
		missing := f.agent("win-missing")
		apply := client.RawPatch("application/apply-patch+yaml",
			[]byte(`{"apiVersion": "windowsmachineconfig.openshift.io/v1alpha1", "kind": "WindowsNodeReport", "metadata": {"name": "win-missing"}, "status": {"state": "InSync"}}`))
		err := missing.Status().Patch(ctx, reportOf(f.namespace, "win-missing"), apply, client.FieldOwner("agent"))
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			t.Errorf("the answer is %v", err)
		}
		if err := f.admin.Get(ctx, f.key("win-missing"), &v1alpha1.WindowsNodeReport{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is there now: %v", err)
		}
	})
	t.Run("no other kind, with any verb", func(t *testing.T) { tryEverything(t, f.within(t), ownNode) })
	t.Run("and no more where somebody has given its group more rights", func(t *testing.T) { f.within(t).agentWithMoreRights(stolen) })
	t.Run("nothing that its definition has no place for", func(t *testing.T) { f.within(t).garbage(stolen) })
}

// agentWithMoreRights shows that the policy holds agents also where RBAC does not.
func (f *fixture) agentWithMoreRights(stolen client.Client) {
	f.Helper()
	const name = "all-reports-for-agents"
	f.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: v1alpha1.AgentsGroup}}},
		reportOf(metav1.NamespaceDefault, ownNode),
	)
	ctx := f.Context()
	f.await("the right is given", func(ctx context.Context) (bool, error) {
		err := stolen.Get(ctx, f.key(ownNode), &v1alpha1.WindowsNodeReport{})
		return err == nil, nil
	})
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "made-by-an-agent"},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.1", DesiredState: v1alpha1.DesiredStateNode, Source: v1alpha1.Source{ConfigMapKey: "10.0.0.1"}}}
	for what, try := range map[string]func() error{
		"its report in another namespace": func() error {
			return stolen.Status().Patch(ctx, reportOf(metav1.NamespaceDefault, ownNode), merge(`{"status": {"state": "InSync"}}`))
		},
		"the labels of its report": func() error {
			return stolen.Patch(ctx, reportOf(f.namespace, ownNode), merge(`{"metadata": {"labels": {"a": "b"}}}`))
		},
		"a new report":           func() error { return stolen.Create(ctx, reportOf(f.namespace, "win-c")) },
		"the end of its report":  func() error { return stolen.Delete(ctx, reportOf(f.namespace, ownNode)) },
		"the end of all reports": func() error { return stolen.DeleteAllOf(ctx, reportOf("", ""), client.InNamespace(f.namespace)) },
		"a WindowsInstance":      func() error { return stolen.Create(ctx, instance) },
		"another's report, by status": func() error {
			return stolen.Status().Patch(ctx, reportOf(f.namespace, otherNode), merge(`{"status": {}}`))
		},
	} {
		f.Run(what, func(t *testing.T) { refused(t, try(), admission.Agents) })
	}
	f.Run("somebody in the group who names no node", func(t *testing.T) {
		nobody := f.as("somebody", v1alpha1.AgentsGroup)
		refused(t, nobody.Status().Patch(ctx, reportOf(f.namespace, ownNode), merge(`{"status": {"state": "InSync"}}`)), admission.Agents)
	})
}

// garbage shows that a report has bounds: an agent in wrong hands can fill no more of the cluster's memory than these.
func (f *fixture) garbage(stolen client.Client) {
	const drift = `{"step": "Service kubelet", "time": "2026-01-01T00:00:00Z"}`
	for what, status := range map[string]string{
		"a state that there is not":        `{"state": "Pwned"}`,
		"a message of kilobytes":           `{"message": "` + strings.Repeat("x", 1025) + `"}`,
		"a version of kilobytes":           `{"agentVersion": "` + strings.Repeat("x", 65) + `"}`,
		"a digest of kilobytes":            `{"specDigest": "` + strings.Repeat("x", 81) + `"}`,
		"more drift than people read":      `{"drift": [` + strings.TrimSuffix(strings.Repeat(drift+",", 17), ",") + `]}`,
		"a step of kilobytes":              `{"drift": [{"step": "` + strings.Repeat("x", 257) + `", "time": "2026-01-01T00:00:00Z"}]}`,
		"a reason of kilobytes":            `{"drift": [{"step": "x", "time": "2026-01-01T00:00:00Z", "reason": "` + strings.Repeat("x", 513) + `"}]}`,
		"a time that is none":              `{"time": "yesterday"}`,
		"a text where a list belongs":      `{"drift": "everything"}`,
		"a list where a text belongs":      `{"message": ["a", "b"]}`,
		"a body beyond all that is stored": `{"message": "` + strings.Repeat("x", 4<<20) + `"}`,
	} {
		f.Run(what, func(t *testing.T) {
			err := stolen.Status().Patch(t.Context(), reportOf(f.namespace, ownNode), merge(`{"status": %s}`, status))
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsRequestEntityTooLargeError(err) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
	f.Run("a field that there is not", func(t *testing.T) {
		must(t, stolen.Status().Patch(t.Context(), reportOf(f.namespace, ownNode), merge(`{"status": {"state": "InSync", "payload": "%s"}}`, strings.Repeat("x", 1<<20))))
		var list v1alpha1.WindowsNodeReportList
		must(t, f.admin.List(t.Context(), &list, client.InNamespace(f.namespace)))
		raw, err := f.rest().Get().AbsPath("/apis/"+v1alpha1.GroupVersion.String(), "namespaces", f.namespace, "windowsnodereports", ownNode).Do(t.Context()).Raw()
		must(t, err)
		if len(raw) > 1<<14 {
			t.Errorf("the report has %d bytes", len(raw))
		}
	})
}

func (f *fixture) rest() rest.Interface {
	f.Helper()
	return discovery.NewDiscoveryClientForConfigOrDie(f.rig.Config).RESTClient()
}

// anybody are what the API server lets everybody do who is authenticated: ask about themselves.
var anybody = []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}

// tryEverything tries each verb on each resource that the API server has, also on what belongs to the agent's own node.
func tryEverything(t *testing.T, f *fixture, node string) {
	config := f.configOf(v1alpha1.AgentUserPrefix+node, v1alpha1.AgentsGroup)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	api := discovery.NewDiscoveryClientForConfigOrDie(config)
	_, lists, err := api.ServerGroupsAndResources()
	must(t, err)
	tried := 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, resource := range list.APIResources {
			if slices.Contains(anybody, resource.Name) {
				continue
			}
			for _, request := range requestsOf(version, resource, f.namespace, node) {
				if strings.HasSuffix(request.path, "/windowsnodereports/"+node+"/status") && request.verb == http.MethodPatch {
					continue // that is the one
				}
				tried++
				sent := api.RESTClient().Verb(request.verb).AbsPath(request.path)
				if request.verb != http.MethodGet {
					sent = sent.SetHeader("Content-Type", request.contentType()).Body([]byte(`{}`))
				}
				if err := sent.Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
					t.Errorf("%s %s: %v, want that it is forbidden", request.verb, request.path, err)
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d requests were tried", tried)
	}
}

// attempt is a request to the API server.
type attempt struct{ verb, path string }

func (a attempt) contentType() string {
	if a.verb == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// requestsOf are the requests that there are to a resource.
func requestsOf(version schema.GroupVersion, resource metav1.APIResource, namespace, name string) []attempt {
	root := "/apis/" + version.String()
	if version.Group == "" {
		root = "/api/" + version.Version
	}
	if resource.Namespaced {
		root += "/namespaces/" + namespace
	}
	main, sub, ofOne := strings.Cut(resource.Name, "/")
	all, one := root+"/"+main, root+"/"+main+"/"+name
	if ofOne {
		one += "/" + sub
		all = one
	}
	var requests []attempt
	for _, verb := range resource.Verbs {
		switch verb {
		case "get":
			requests = append(requests, attempt{http.MethodGet, one})
		case "list", "watch":
			requests = append(requests, attempt{http.MethodGet, all})
		case "create":
			requests = append(requests, attempt{http.MethodPost, all})
		case "update":
			requests = append(requests, attempt{http.MethodPut, one})
		case "patch":
			requests = append(requests, attempt{http.MethodPatch, one})
		case "delete":
			requests = append(requests, attempt{http.MethodDelete, one})
		case "deletecollection":
			requests = append(requests, attempt{http.MethodDelete, all})
		}
	}
	return requests
}
