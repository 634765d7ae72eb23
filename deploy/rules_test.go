package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/deploy"
)

// clusterWideWrites contains the writes that the operator may perform in the complete cluster, with the reason why
// a Role in a namespace is insufficient. The ValidatingAdmissionPolicies of internal/controller/admission restrict
// these requests further.
var clusterWideWrites = map[string]string{
	"nodes: delete":                         "Nodes are in no namespace",
	"nodes: patch":                          "Nodes are in no namespace",
	"nodes/status: patch":                   "Nodes are in no namespace",
	"pods/eviction: create":                 "pods of any namespace run on Windows nodes, and leave them before a node is disturbed",
	"secrets: create":                       "the user data are in the Machine API's namespaces, where OLM makes no Role; by name",
	"secrets: patch":                        "the same; by name",
	"configmaps: create":                    "the console reads dashboards from one namespace, where OLM makes no Role; by name",
	"configmaps: patch":                     "the same; by name",
	"configmaps: delete":                    "the same; by name",
	"events.events.k8s.io: create":          "an event about a Node is in the namespace default, and one about a Machine is in the Machine's",
	"events.events.k8s.io: patch":           "the same, when it happens again",
	"machines.machine.openshift.io: delete": "Machines are in the Machine API's namespace, where OLM makes no Role",
	"certificatesigningrequests.certificates.k8s.io: create":                 "certificate requests are in no namespace",
	"certificatesigningrequests.certificates.k8s.io: delete":                 "certificate requests are in no namespace",
	"certificatesigningrequests/approval.certificates.k8s.io: update":        "certificate requests are in no namespace",
	"signers.certificates.k8s.io: approve":                                   "signers are in no namespace; by name",
	"tokenreviews.authentication.k8s.io: create":                             "whose token it is that reads metrics; reviews are in no namespace and leave nothing behind",
	"subjectaccessreviews.authorization.k8s.io: create":                      "who may read metrics; reviews are in no namespace and leave nothing behind",
	"clusterroles.rbac.authorization.k8s.io: delete":                         "what an older operator has left, by name",
	"clusterrolebindings.rbac.authorization.k8s.io: delete":                  "what an older operator has left, by name",
	"validatingadmissionpolicies.admissionregistration.k8s.io: create":       "policies are in no namespace; RBAC cannot name what is created",
	"validatingadmissionpolicies.admissionregistration.k8s.io: patch":        "the operator's own policies, by name",
	"validatingadmissionpolicies.admissionregistration.k8s.io: delete":       "the operator's own policies, by name",
	"validatingadmissionpolicybindings.admissionregistration.k8s.io: create": "bindings of policies are in no namespace; RBAC cannot name what is created",
	"validatingadmissionpolicybindings.admissionregistration.k8s.io: patch":  "the bindings of the operator's own policies, by name",
	"validatingadmissionpolicybindings.admissionregistration.k8s.io: delete": "the bindings of the operator's own policies, by name",
}

// nameLimitedWrites lists the writes above that must be limited to object names.
var nameLimitedWrites = []string{
	"secrets: create", "secrets: patch", "configmaps: create", "configmaps: patch", "configmaps: delete", "signers.certificates.k8s.io: approve",
	"clusterroles.rbac.authorization.k8s.io: delete", "clusterrolebindings.rbac.authorization.k8s.io: delete",
}

// readRoles returns all ClusterRoles and Roles for the operator itself.
func readRoles(t *testing.T) []rbacv1.ClusterRole {
	t.Helper()
	data, err := deploy.Files.ReadFile("rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return decodeRoles(t, data)
}

func decodeRoles(t *testing.T, data []byte) (found []rbacv1.ClusterRole) {
	t.Helper()
	reader := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	defer reader.Close()
	document := make([]byte, len(data))
	for {
		n, err := reader.Read(document)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole // a Role has no other fields
		if err := yaml.Unmarshal(document[:n], &role); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(role.Kind, "Role") {
			found = append(found, role)
		}
	}
}

// rule is a rule of a role for one resource and one verb.
type rule struct {
	clusterWide    bool
	resource, verb string
	names          []string
}

func (r rule) String() string { return r.resource + ": " + r.verb }

func splitRoles(roles []rbacv1.ClusterRole) (rules []rule) {
	for _, role := range roles {
		for _, r := range role.Rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					if group != "" {
						resource += "." + group
					}
					for _, verb := range r.Verbs {
						rules = append(rules, rule{role.Kind == "ClusterRole", resource, verb, r.ResourceNames})
					}
				}
			}
		}
	}
	return rules
}

func TestRBAC_OperatorRightsAreMinimal(t *testing.T) {
	rules := splitRoles(readRoles(t))
	if len(rules) < 50 {
		t.Fatalf("there are only %d rules", len(rules))
	}
	t.Run("Secrets are read and written by name, and not by a list of all", func(t *testing.T) {
		for _, r := range rules {
			if r.resource == "secrets" && len(r.names) == 0 {
				t.Errorf("%s is of any name", r)
			}
		}
	})
	t.Run("what changes the cluster outside of the operator's namespace has a reason", func(t *testing.T) {
		seen := map[string]bool{}
		for _, r := range rules {
			if !r.clusterWide || slices.Contains([]string{"get", "list", "watch"}, r.verb) {
				continue
			}
			seen[r.String()] = true
			if clusterWideWrites[r.String()] == "" {
				t.Errorf("%s has none: make it a Role's, or say why that will not do", r)
			}
			if slices.Contains(nameLimitedWrites, r.String()) && len(r.names) == 0 {
				t.Errorf("%s is of any name", r)
			}
		}
		for rule := range clusterWideWrites {
			if !seen[rule] && !strings.Contains(rule, "admissionregistration") {
				t.Errorf("%s is no right of the operator any more: take it out of the list", rule)
			}
		}
	})
	t.Run("nobody gets more rights by the operator's", func(t *testing.T) {
		for _, r := range rules {
			if slices.Contains([]string{"escalate", "impersonate"}, r.verb) || r.verb == "bind" && len(r.names) == 0 {
				t.Errorf("%s", r)
			}
			for _, way := range []string{"pods", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers",
				"nodes/proxy", "serviceaccounts/token"} {
				if r.resource == way && !slices.Contains([]string{"get", "list", "watch"}, r.verb) || r.resource == way &&
					strings.Contains(way, "/") {
					t.Errorf("%s lets the operator become any pod", r)
				}
			}
			for _, role := range []string{"clusterroles", "roles", "clusterrolebindings", "rolebindings"} {
				if r.resource == role+".rbac.authorization.k8s.io" && slices.Contains([]string{"update", "patch"}, r.verb) &&
					len(r.names) == 0 {
					t.Errorf("%s is of any name", r)
				}
			}
		}
	})
}

func TestRBAC_NoRoleHasWildcard(t *testing.T) {
	checked := 0
	err := fs.WalkDir(deploy.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, "crd/") {
			return err
		}
		data, err := deploy.Files.ReadFile(path)
		if err != nil {
			return err
		}
		for _, role := range decodeRoles(t, data) {
			for _, r := range role.Rules {
				checked++
				for _, list := range [][]string{r.APIGroups, r.Resources, r.Verbs, r.ResourceNames, r.NonResourceURLs} {
					if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
						t.Errorf("%s: %s has %v", path, role.Name, r)
					}
				}
			}
		}
		return nil
	})
	if err != nil || checked < 20 {
		t.Errorf("%d rules were looked at, error %v", checked, err)
	}
}
