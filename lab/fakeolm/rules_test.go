package fakeolm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/lab/fakeolm"
)

// Readers compare the table with OLM's documents.
func TestRules_DocumentedWithSource(t *testing.T) {
	document, err := os.ReadFile("../../docs/verified/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, rule := range fakeolm.Rules() {
		row := "| " + rule.Does + " | [" + strings.TrimPrefix(rule.Source, "https://") + "](" + rule.Source + ") |"
		if !strings.Contains(string(document), row) {
			t.Errorf("docs/verified/lab.md has no row\n%s", row)
		}
		rows++
	}
	_, table, _ := strings.Cut(string(document), "| rule | source |\n|---|---|\n")
	if table, _, _ = strings.Cut(table, "\n\n"); strings.Count(table, "\n")+1 != rows {
		t.Errorf("the table has %d rows, and there are %d rules", strings.Count(table, "\n")+1, rows)
	}
}

func TestNextRelease(t *testing.T) {
	chain := []fakeolm.Entry{{Name: "op.v1.0.0"}, {Name: "op.v1.1.0", Replaces: "op.v1.0.0"},
		{Name: "op.v1.2.0", Replaces: "op.v1.1.0", Skips: []string{"op.v1.1.9"}}}
	withRange := append(chain[:2:2], fakeolm.Entry{Name: "op.v2.0.0", Replaces: "op.v1.1.0", SkipRange: ">=0.5.0 <2.0.0"})
	// The example of the documents: a skipped release outside the chain of replacements offers no upgrade path.
	pruned := []fakeolm.Entry{{Name: "op.v3.0.0", Skips: []string{"op.v2.0.0"}}, {Name: "op.v2.0.0", SkipRange: ">=1.0.0 <2.0.0"}}
	for _, test := range []struct {
		name            string
		entries         []fakeolm.Entry
		installed, want string
	}{
		{"the head, where nothing is installed", chain, "", "op.v1.2.0"},
		{"the one that replaces it", chain, "op.v1.0.0", "op.v1.1.0"},
		{"the one that skips it", chain, "op.v1.1.9", "op.v1.2.0"},
		{"none for the head", chain, "op.v1.2.0", ""},
		{"none for what nobody knows", chain, "op.v9.0.0", ""},
		{"the one with it in its range, before the one that replaces it", withRange, "op.v1.0.0", "op.v2.0.0"},
		{"the one with it in its range, though it is in no channel", withRange, "op.v0.7.0", "op.v2.0.0"},
		{"none by a release that is skipped itself", pruned, "op.v1.0.0", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			version, _ := semver.Parse(strings.TrimPrefix(test.installed, "op.v"))
			if got, err := fakeolm.NextRelease(test.entries, test.installed, version); err != nil || got != test.want {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
	t.Run("a channel with two heads is an error", func(t *testing.T) {
		if _, err := fakeolm.NextRelease([]fakeolm.Entry{{Name: "a"}, {Name: "b"}}, "", semver.Version{}); err == nil {
			t.Error("it is accepted")
		}
	})
}

func TestInstallBlocker_GroupMustMatchInstallModes(t *testing.T) {
	for _, test := range []struct {
		name    string
		targets []string
		needs   v1alpha1.InstallModeType
	}{
		{"its own namespace", []string{"windows"}, v1alpha1.InstallModeTypeOwnNamespace},
		{"another one", []string{"default"}, v1alpha1.InstallModeTypeSingleNamespace},
		{"several", []string{"windows", "default"}, v1alpha1.InstallModeTypeMultiNamespace},
		{"all", nil, v1alpha1.InstallModeTypeAllNamespaces},
	} {
		t.Run(test.name, func(t *testing.T) {
			group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "windows", Name: "group"},
				Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: test.targets}}
			if reason := fakeolm.InstallBlocker([]v1alpha1.InstallMode{{Type: test.needs, Supported: true}}, group); reason != "" {
				t.Errorf("it is refused: %s", reason)
			}
			reason := fakeolm.InstallBlocker([]v1alpha1.InstallMode{{Type: test.needs}}, group)
			if !strings.HasPrefix(reason, string(test.needs)+" InstallModeType not supported") {
				t.Errorf("it says %q", reason)
			}
		})
	}
}

func TestUpgradeBlocker(t *testing.T) {
	condition := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: status, Message: "why"}}
	}
	for _, test := range []struct {
		name                  string
		conditions, overrides []metav1.Condition
		held                  bool
	}{
		{"nothing is said", nil, nil, false},
		{"the operator agrees", condition(metav1.ConditionTrue), nil, false},
		{"the operator does not know", condition(metav1.ConditionUnknown), nil, false},
		{"the operator is busy", condition(metav1.ConditionFalse), nil, true},
		{"the administrator overrides a busy operator", condition(metav1.ConditionFalse), condition(metav1.ConditionTrue), false},
		{"the administrator holds it", condition(metav1.ConditionTrue), condition(metav1.ConditionFalse), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			reason := fakeolm.UpgradeBlocker(&operatorsv2.OperatorCondition{Spec: operatorsv2.OperatorConditionSpec{Conditions: test.conditions,
				Overrides: test.overrides}})
			if (reason != "") != test.held {
				t.Errorf("it says %q", reason)
			}
		})
	}
}
