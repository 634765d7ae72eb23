package admission

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

func TestGuards_MatchFewAndFailClosed(t *testing.T) {
	for _, g := range Guards() {
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
