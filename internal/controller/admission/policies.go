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

// Names of the policies, each of which has a binding of the same name.
const (
	CloudNodeManagers = v1alpha1.OperatorName + "-cloud-node-managers"
	Kubelets          = v1alpha1.OperatorName + "-kubelets"
)

// Guard is a policy, and the binding that puts it in force.
type Guard struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
}

// Guards returns the policies. RBAC limits the kinds that a user may write; the policies limit the objects. Each applies
// only to the few users in its match conditions, and only to the kinds that they can write: no other request can fail
// because of it. The expressions are for Kubernetes 1.30 and later.
func Guards() []Guard { return []Guard{cloudNodeManagers(), kubelets()} }

// objects returns the policies and bindings with their owner. The names are the operator's: it takes over what has one.
func objects(owner metav1.OwnerReference) []owned.Object {
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

// cloudNodeManagers hold cloud-node-manager on a Windows node to its own Node. Its group may write all of them. On
// Linux nodes it goes by a ServiceAccount, which is not concerned.
func cloudNodeManagers() Guard {
	const prefix = "system:cloud-node-manager:"
	g := guard(CloudNodeManagers, "the-cloud-node-manager-of-a-windows-node",
		fmt.Sprintf(`has(request.userInfo.groups) && "system:cloud-node-managers" in request.userInfo.groups &&
has(request.userInfo.username) && request.userInfo.username.startsWith(%q)`, prefix),
		[]admissionv1.NamedRuleWithOperations{
			on("", []string{"nodes", "nodes/*"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		},
		append([]admissionv1.Validation{
			refuses("cloud-node-manager on a Windows node may change only its own Node.",
				fmt.Sprintf(`request.operation == "UPDATE" && has(request.name) && request.userInfo.username == %q + request.name`,
					prefix)),
		}, keepsNode("cloud-node-manager")...)...,
	)
	g.Policy.Spec.Variables = annotations
	return g
}

// kubelets keeps those who have a kubelet's certificate from writing what the operator notes on Nodes: whose they are,
// and which key their hosts have; and from taking a Node out of the operator's reach. NodeRestriction lets a kubelet
// write any annotation of its own Node, and the label that says which system it runs. The policy is not evaluated for
// other nodes' kubelets, as long as they write nothing of the operator's: no fault of it can stop a Linux node.
func kubelets() Guard {
	g := guard(Kubelets, "a-kubelet",
		`has(request.userInfo.groups) && "system:nodes" in request.userInfo.groups`,
		[]admissionv1.NamedRuleWithOperations{
			on("", []string{"nodes", "nodes/*"}, admissionv1.Create, admissionv1.Update),
		},
		keepsNode("a kubelet")...,
	)
	g.Policy.Spec.MatchConditions = append(g.Policy.Spec.MatchConditions, admissionv1.MatchCondition{
		Name: "a-windows-node-or-what-the-operator-notes",
		Expression: fmt.Sprintf(`oldObject != null && %s || %s ||
has(object.metadata.annotations) && object.metadata.annotations.exists(name, name.startsWith(%q))`,
			windowsNode("oldObject"), windowsNode("object"),
			v1alpha1.GroupVersion.Group+"/"),
	})
	g.Policy.Spec.Variables = annotations
	return g
}

// windowsNode is true for a Node with the label of Windows: object is as the request makes it, oldObject as it was before.
func windowsNode(object string) string {
	return fmt.Sprintf(`has(%[1]s.metadata.labels) && %[2]q in %[1]s.metadata.labels && %[1]s.metadata.labels[%[2]q] == "windows"`,
		object, corev1.LabelOSStable)
}

// annotations are the variables that keepsNode compares. A new object has none before, and a deleted one none after.
var annotations = []admissionv1.Variable{
	{Name: "before", Expression: `oldObject != null && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}`},
	{Name: "after", Expression: `object != null && has(object.metadata.annotations) ? object.metadata.annotations : {}`},
}

// keepsNode refuses that the operator's annotations of a Node are made, changed or taken away, and that a Windows node
// becomes another: the operator could neither drain nor delete it any more.
func keepsNode(who string) []admissionv1.Validation {
	prefix := v1alpha1.GroupVersion.Group + "/"
	return []admissionv1.Validation{
		refuses("The annotations "+prefix+"* of a Node belong to the operator: "+who+" must not add or change one.",
			fmt.Sprintf(`variables.after.all(name, !name.startsWith(%q) ||
name in variables.before && variables.before[name] == variables.after[name])`, prefix)),
		refuses("The annotations "+prefix+"* of a Node belong to the operator: "+who+" must not remove one.",
			fmt.Sprintf(`variables.before.all(name, !name.startsWith(%q) || name in variables.after)`, prefix)),
		refuses("A Windows node stays a Windows node: "+who+" must not change or remove its label "+
			corev1.LabelOSStable+"=windows.",
			fmt.Sprintf(`request.operation != "UPDATE" || !(%s) || %s`,
				windowsNode("oldObject"), windowsNode("object"))),
	}
}

// guard makes a policy and its binding with all that the API server would fill in, so that they can be compared.
func guard(name, who, matches string, rules []admissionv1.NamedRuleWithOperations,
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

// on are requests to resources of a group, in whatever version.
func on(group string, resources []string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	all := admissionv1.AllScopes
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"},
			Resources: resources, Scope: &all},
	}}
}

// refuses requests for which the expression is not true, with the message.
func refuses(message, expression string) admissionv1.Validation {
	reason := metav1.StatusReasonForbidden
	return admissionv1.Validation{Expression: expression, Message: message, Reason: &reason}
}
