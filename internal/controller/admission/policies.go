package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/owned"
)

// Names of the policies. Each policy has a binding of the same name.
const (
	CloudNodeManagers = v1alpha1.OperatorName + "-cloud-node-managers"
	Kubelets          = v1alpha1.OperatorName + "-kubelets"
)

// Guard is a policy, and the binding that enforces the policy.
type Guard struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
}

// Guards returns the policies. RBAC limits the kinds that a user may write; the policies limit the objects.
// Each policy applies only to the few users in its match conditions, and only to the kinds that these users can
// write: no other request can fail because of a policy. The expressions are for Kubernetes 1.30 and later.
func Guards() []Guard { return []Guard{newCloudNodeManagersGuard(), newKubeletsGuard()} }

// desiredObjects returns the policies and bindings with their owner. The operator owns the names, and adopts any
// object with such a name.
func desiredObjects(owner metav1.OwnerReference) []owned.Object {
	always := func(client.Object) bool { return true }
	var all []owned.Object
	for _, g := range Guards() {
		all = append(all, owned.Object{Identity: g.Policy, Adopt: always, Fill: func(object client.Object) {
			object.SetOwnerReferences([]metav1.OwnerReference{owner})
			if policy, ok := object.(*admissionv1.ValidatingAdmissionPolicy); ok {
				policy.Spec = *g.Policy.Spec.DeepCopy()
			}
		}}, owned.Object{Identity: g.Binding, Adopt: always, Fill: func(object client.Object) {
			object.SetOwnerReferences([]metav1.OwnerReference{owner})
			if binding, ok := object.(*admissionv1.ValidatingAdmissionPolicyBinding); ok {
				binding.Spec = *g.Binding.Spec.DeepCopy()
			}
		}})
	}
	return all
}

// newCloudNodeManagersGuard returns the guard that restricts cloud-node-manager on a Windows node to its own Node. The
// RBAC group may write all Nodes. On Linux nodes, cloud-node-manager uses a ServiceAccount and is unaffected.
func newCloudNodeManagersGuard() Guard {
	const prefix = "system:cloud-node-manager:"
	g := newGuard(CloudNodeManagers, "the-cloud-node-manager-of-a-windows-node",
		fmt.Sprintf(`has(request.userInfo.groups) && "system:cloud-node-managers" in request.userInfo.groups &&
has(request.userInfo.username) && request.userInfo.username.startsWith(%q)`, prefix),
		[]admissionv1.NamedRuleWithOperations{
			newRule("", []string{"nodes", "nodes/*"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		},
		append([]admissionv1.Validation{
			denyUnless("cloud-node-manager on a Windows node may change only its own Node.",
				fmt.Sprintf(`request.operation == "UPDATE" && has(request.name) && request.userInfo.username == %q + request.name`,
					prefix)),
		}, nodeValidations("cloud-node-manager")...)...,
	)
	g.Policy.Spec.Variables = annotations
	return g
}

// newKubeletsGuard returns the guard for clients with the certificate of a kubelet. Such a client must not write the
// operator's annotations of Nodes, for example the owning instance and the hash of the SSH key. It also must
// not remove a Node from the operator's control. NodeRestriction allows a kubelet to write any annotation of
// its own Node, and the label for the operating system. The policy is not evaluated for the kubelets of other
// nodes unless a request writes annotations of the operator: a fault of the policy cannot stop a Linux node.
func newKubeletsGuard() Guard {
	g := newGuard(Kubelets, "a-kubelet",
		`has(request.userInfo.groups) && "system:nodes" in request.userInfo.groups`,
		[]admissionv1.NamedRuleWithOperations{
			newRule("", []string{"nodes", "nodes/*"}, admissionv1.Create, admissionv1.Update),
		},
		nodeValidations("a kubelet")...,
	)
	g.Policy.Spec.MatchConditions = append(g.Policy.Spec.MatchConditions, admissionv1.MatchCondition{
		Name: "a-windows-node-or-what-the-operator-notes",
		Expression: fmt.Sprintf(`oldObject != null && %s || %s ||
has(object.metadata.annotations) && object.metadata.annotations.exists(name, name.startsWith(%q))`,
			windowsNodeExpression("oldObject"), windowsNodeExpression("object"),
			v1alpha1.GroupVersion.Group+"/"),
	})
	g.Policy.Spec.Variables = annotations
	return g
}

// windowsNodeExpression returns an expression that is true for a Node with the Windows label. The variable object is
// the new object of the request, oldObject the previous one.
func windowsNodeExpression(object string) string {
	return fmt.Sprintf(`has(%[1]s.metadata.labels) && %[2]q in %[1]s.metadata.labels && %[1]s.metadata.labels[%[2]q] == "windows"`,
		object, corev1.LabelOSStable)
}

// annotations are the variables for nodeValidations. A new object has no annotations before, and a deleted object
// none after.
var annotations = []admissionv1.Variable{
	{Name: "before", Expression: `oldObject != null && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}`},
	{Name: "after", Expression: `object != null && has(object.metadata.annotations) ? object.metadata.annotations : {}`},
}

// nodeValidations refuses requests that create, change or remove the operator's annotations of a Node, or that change
// the operating system of a Windows node: the operator could no longer drain or delete such a Node.
func nodeValidations(who string) []admissionv1.Validation {
	prefix := v1alpha1.GroupVersion.Group + "/"
	return []admissionv1.Validation{
		denyUnless("The annotations "+prefix+"* of a Node belong to the operator: "+who+" must not add or change them.",
			fmt.Sprintf(`variables.after.all(name, !name.startsWith(%q) ||
name in variables.before && variables.before[name] == variables.after[name])`, prefix)),
		denyUnless("The annotations "+prefix+"* of a Node belong to the operator: "+who+" must not remove them.",
			fmt.Sprintf(`variables.before.all(name, !name.startsWith(%q) || name in variables.after)`, prefix)),
		denyUnless("The operating system of a Windows node belongs to the operator: "+who+" must not change or remove the label "+
			corev1.LabelOSStable+"=windows.",
			fmt.Sprintf(`request.operation != "UPDATE" || !(%s) || %s`,
				windowsNodeExpression("oldObject"), windowsNodeExpression("object"))),
	}
}

// newGuard returns a policy and its binding with all defaults of the API server set, so that both can be compared.
func newGuard(name, who, matches string, rules []admissionv1.NamedRuleWithOperations,
	validations ...admissionv1.Validation) Guard {
	metadata := metav1.ObjectMeta{Name: name}
	fail, equivalent := admissionv1.Fail, admissionv1.Equivalent
	return Guard{
		Policy: &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metadata,
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: &fail,
				MatchConstraints: &admissionv1.MatchResources{
					ResourceRules: rules, MatchPolicy: &equivalent,
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				},
				MatchConditions: []admissionv1.MatchCondition{{Name: who, Expression: matches}},
				Validations:     validations,
			},
		},
		Binding: &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(),
				Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metadata,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}
}

// newRule returns a rule for requests to resources of a group, in any version.
func newRule(group string, resources []string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	all := admissionv1.AllScopes
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"},
			Resources: resources, Scope: &all},
	}}
}

// denyUnless returns a validation that refuses requests with the message if the expression is false.
func denyUnless(message, expression string) admissionv1.Validation {
	reason := metav1.StatusReasonForbidden
	return admissionv1.Validation{Expression: expression, Message: message, Reason: &reason}
}
