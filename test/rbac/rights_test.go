package rbac

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/fakeolm"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Parts of the list below.
const (
	admissionGroup = ".admissionregistration.k8s.io"
	rbacGroup      = ".rbac.authorization.k8s.io"
	operatorGroup  = ".windowsmachineconfig.openshift.io"
	ownNamespace   = " in its own namespace"

	sameEvent = "counts an event that happens again within minutes, which any event of the operator may"
	offAgain  = "takes away what the label of the namespace no longer asks for: the tests of internal/controller/monitoring"
	newOwner  = "OpenShift asks for it when an owner reference is written (OwnerReferencesPermissionEnforcement)"
)

// notExercised maps the permissions for operations that do not happen in these tests to the reason, with or without
// an object name. An unused permission that is not listed here is superfluous.
var notExercised = map[string]string{
	"patch events.events.k8s.io":                                                    sameEvent,
	"patch events.events.k8s.io" + ownNamespace:                                     sameEvent,
	"approve signers.certificates.k8s.io named kubernetes.io/kube-apiserver-client": "for cloud-node-manager, on Azure only: test/certificates",
	"delete validatingadmissionpolicies" + admissionGroup:                           newOwner,
	"delete validatingadmissionpolicybindings" + admissionGroup:                     newOwner,
	"delete servicemonitors.monitoring.coreos.com" + ownNamespace:                   offAgain,
	"delete prometheusrules.monitoring.coreos.com" + ownNamespace:                   offAgain,
	"delete services" + ownNamespace:                                                newOwner,
	"delete configmaps named dashboard-windows-nodes":                               offAgain,
	"delete endpoints" + ownNamespace:                                               "deletes what earlier releases wrote: the tests of internal/controller/monitoring",
	"patch nodes/status":                                                            "says that an agent is silent, after 15 minutes: internal/controller/nodecondition",
}

// exceptionReason returns the reason why a permission may be unused, or "".
func exceptionReason(right audit.Right) string {
	unnamed := right
	unnamed.Name = ""
	return cmp.Or(notExercised[right.String()], notExercised[unnamed.String()])
}

// forbidden maps the requests that the operator makes without permission to the reason.
var forbidden = map[string]string{}

// The operator is installed by OLM and from the manifests, in two namespaces. No request is refused, and each
// permission is used.
func TestRBAC_OperatorHasExactlyUsedRights(t *testing.T) {
	bundle, err := fakeolm.Read(bundleManifests)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var all []audit.Right
	for name, w := range map[string]installation{
		"installed by OLM":             {namespace: testenv.Namespace, bundle: bundle},
		"installed from the manifests": {namespace: "windows-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			l := w.newLab(t)
			l.exerciseOperator()
			requests := l.operatorRequests()
			if len(requests) < 100 {
				t.Fatalf("the audit log has only %d requests of the operator", len(requests))
			}
			for _, request := range forbiddenRequests(requests) {
				t.Errorf("the operator was refused: %s", request)
			}
			all = shippedRights(t, w.namespace)
			for right, count := range audit.Uses(all, slices.Concat(requests, audit.Implied(requests),
				l.signers.signerApprovals(requests))) {
				if count > 0 {
					used[right.String()] = true
				}
			}
		})
	}
	if t.Failed() {
		return // unreached operations prove nothing
	}
	markers := readMarkers(t)
	for _, right := range all {
		if !used[right.String()] && exceptionReason(right) == "" {
			t.Errorf("nothing used the right to %s: take it out of the marker at %s, or say in notExercised why it is there",
				right, markersOf(markers, right))
		}
	}
}

func TestRBAC_ExceptionsNameExistingRights(t *testing.T) {
	for rule, reason := range notExercised {
		if !slices.ContainsFunc(shippedRights(t, "ns"), func(r audit.Right) bool {
			unnamed := r
			unnamed.Name = ""
			return r.String() == rule || unnamed.String() == rule
		}) {
			t.Errorf("the operator has no right to %s: take it out of the list", rule)
		}
		if len(reason) < 20 {
			t.Errorf("%s: the reason is %q", rule, reason)
		}
	}
}

// forbiddenRequests returns the operator's forbidden requests, each kind once.
func forbiddenRequests(requests []audit.Event) []string {
	var kinds []string
	for _, request := range requests {
		if !request.IsForbidden() {
			continue
		}
		what := request.Verb + " " + request.Resource()
		if request.Object.APIGroup != "" {
			what += "." + request.Object.APIGroup
		}
		if _, excepted := forbidden[what]; excepted {
			continue
		}
		line := fmt.Sprintf("%s (%s/%s %s): %s", what, request.Object.Namespace, request.Object.Name, request.URI,
			request.Response.Message)
		if !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(k, what+" ") }) {
			kinds = append(kinds, line)
		}
	}
	return kinds
}

// shippedRights returns the permissions that deploy/rbac/role.yaml grants to an operator in a namespace. hack/bundle
// tests that the bundle grants the same permissions.
func shippedRights(t *testing.T, namespace string) []audit.Right {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "deploy", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rights []audit.Right
	for _, document := range strings.Split(string(data), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has no other fields
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		in := ""
		if role.Kind == "Role" {
			in = namespace
		}
		rights = append(rights, audit.Rights(in, role.Rules)...)
	}
	if len(rights) < 50 {
		t.Fatalf("there are only %d rights", len(rights))
	}
	return rights
}

func TestForbiddenRequests_EachReported(t *testing.T) {
	request := func(verb, group, resource, decision string, code int) audit.Event {
		e := audit.Event{Verb: verb, Annotations: map[string]string{"authorization.k8s.io/decision": decision}}
		e.Object.APIGroup, e.Object.Resource, e.Response.Code = group, resource, code
		return e
	}
	got := forbiddenRequests([]audit.Event{
		request("get", "", "nodes", "allow", 200), request("get", "", "nodes", "allow", 404),
		request("patch", "", "nodes", "allow", 409),
		request("list", "", "secrets", "forbid", 403), request("list", "", "secrets", "forbid", 403),
		request("list", "apps", "secrets", "forbid", 403),
		request("update", "certificates.k8s.io", "certificatesigningrequests", "allow", 403), // by the check of the signer
	})
	if len(got) != 3 || !strings.HasPrefix(got[0], "list secrets (") ||
		!strings.HasPrefix(got[1], "list secrets.apps (") ||
		!strings.HasPrefix(got[2], "update certificatesigningrequests.certificates.k8s.io (") {
		t.Errorf("got %q", got)
	}
}
