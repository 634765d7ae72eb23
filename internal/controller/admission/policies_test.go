package admission

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestEveryPolicyIsAboutFewAndFailsClosed(t *testing.T) {
	for _, g := range Guards("wmco") {
		t.Run(g.Policy.Name, func(t *testing.T) {
			spec := g.Policy.Spec
			if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionv1.Fail {
				t.Error("what it cannot judge passes")
			}
			if len(spec.MatchConditions) == 0 || !strings.Contains(spec.MatchConditions[0].Expression, "request.userInfo") {
				t.Errorf("it is about everybody: %+v", spec.MatchConditions)
			}
			for _, rule := range spec.MatchConstraints.ResourceRules {
				if slices.Contains(rule.APIGroups, "*") {
					t.Errorf("every request of the cluster is looked at: %+v", rule)
				}
			}
			for _, validation := range spec.Validations {
				if validation.Message == "" || !strings.HasSuffix(validation.Message, ".") || validation.Reason == nil {
					t.Errorf("who is refused reads nothing: %+v", validation)
				}
			}
			if g.Binding.Name != g.Policy.Name || g.Binding.Spec.PolicyName != g.Policy.Name ||
				!slices.Equal(g.Binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) ||
				g.Binding.Spec.MatchResources != nil {
				t.Errorf("its binding is %+v", g.Binding)
			}
		})
	}
}

func TestThePoliciesFollowTheNamespaceOfTheOperator(t *testing.T) {
	for _, g := range Guards("somewhere-else") {
		text := g.Policy.Spec.String()
		if g.Policy.Name == Operator && !strings.Contains(text, "somewhere-else") {
			t.Errorf("%s does not say where the operator is", g.Policy.Name)
		}
		if strings.Contains(text, "openshift-windows-machine-config-operator") {
			t.Errorf("%s says that the operator is in its usual namespace", g.Policy.Name)
		}
	}
}

func TestThatAnAPIServerHasNoPoliciesIsToldOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Live: fake.NewClientBuilder().Build(), Namespace: "wmco", Events: recorder}
	for range 2 {
		if err := r.TellNotServed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 || !strings.Contains(<-recorder.Events, "AdmissionPoliciesNotServed") {
		t.Error("it is not reported, or more than once")
	}
}
