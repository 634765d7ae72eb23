package fakeolm

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is a documented behavior of OLM that the player simulates.
type Rule struct {
	Does, Source string
}

const (
	documents = "https://olm.operatorframework.io/docs/"
	okd       = "https://docs.okd.io/latest/operators/understanding/olm/"
)

// Rules returns the complete behavior of the player. docs/verified/lab.md contains the table.
func Rules() []Rule {
	return []Rule{
		{"A Subscription names a package and a channel in a CatalogSource, by its name and namespace. Without such a CatalogSource nothing is installed.",
			documents + "tasks/install-operator-with-olm/"},
		{"A catalog that breaks a rule of operator-registry is not served, for example with an entry that has no bundle.",
			"https://github.com/operator-framework/operator-registry"},
		{"The first installation is the head of the channel: the release that no other release replaces or skips.",
			okd + "olm-workflow.html"},
		{"The next release of an installed release is nearest to the head, and replaces it, skips it, or has it in its skipRange.",
			documents + "concepts/olm-architecture/operator-catalog/creating-an-update-graph/"},
		{"Each installation and each upgrade is an InstallPlan. With Automatic in the Subscription it is approved at once, with Manual it waits for `spec.approved`.",
			documents + "tasks/install-operator-with-olm/"},
		{"A namespace with no OperatorGroup or with several lets an InstallPlan fail.",
			okd + "olm-understanding-operatorgroups.html"},
		{"A ClusterServiceVersion without an install mode for the OperatorGroup is Failed with reason UnsupportedOperatorGroup, until one of both changes.",
			okd + "olm-understanding-operatorgroups.html"},
		{"OLM creates Deployment, ServiceAccount, rights and OperatorCondition. Their owner is the ClusterServiceVersion; cluster-scoped objects have the labels `olm.owner`.",
			documents + "concepts/olm-architecture/"},
		{"While the OperatorCondition of the current release has Upgradeable=False, the new release is Pending with reason OperatorConditionNotUpgradeable. An override of the administrator takes precedence.",
			documents + "advanced-tasks/communicating-operator-conditions-to-olm/"},
		{"The replaced release is deleted when the new release has Succeeded.", okd + "olm-workflow.html"},
		{"Deleting Subscription and ClusterServiceVersion deletes the objects that OLM created. Definitions and their objects stay.",
			"https://operator-framework.github.io/olm-book/docs/uninstall-an-operator.html"},
	}
}

// Entry is a release in a channel of a catalog, with its upgrade edges.
type Entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// Head returns the release of a channel that no other release replaces or skips. Several heads are an error.
func Head(entries []Entry) (string, error) {
	var heads []string
	for _, e := range entries {
		if !slices.ContainsFunc(entries, func(other Entry) bool {
			return other.Replaces == e.Name || slices.Contains(other.Skips, e.Name)
		}) {
			heads = append(heads, e.Name)
		}
	}
	if len(heads) != 1 {
		return "", fmt.Errorf("a channel must have one head, and this one has %q", heads)
	}
	return heads[0], nil
}

// NextRelease returns the next release of a channel for an installed release, or the first release to install; ""
// for none.
func NextRelease(entries []Entry, installed string, version semver.Version) (string, error) {
	next, err := Head(entries)
	if err != nil || installed == "" {
		return next, err
	}
	for {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == next })
		if i < 0 || next == installed {
			return "", nil
		}
		leads, err := entries[i].canReplace(installed, version)
		if leads || err != nil {
			return next, err
		}
		next = entries[i].Replaces
	}
}

func (e Entry) canReplace(installed string, version semver.Version) (bool, error) {
	if e.Replaces == installed || slices.Contains(e.Skips, installed) {
		return true, nil
	}
	if e.SkipRange == "" {
		return false, nil
	}
	inRange, err := semver.ParseRange(e.SkipRange)
	if err != nil {
		return false, fmt.Errorf("skipRange of %s: %w", e.Name, err)
	}
	return inRange(version), nil
}

// InstallBlocker returns why an operator cannot be installed for the namespaces that an OperatorGroup selects; "" if
// it can.
func InstallBlocker(modes []v1alpha1.InstallMode, group *operatorsv1.OperatorGroup) string {
	needed := v1alpha1.InstallModeTypeAllNamespaces
	switch targets := group.Spec.TargetNamespaces; {
	case len(targets) == 1 && targets[0] == group.Namespace:
		needed = v1alpha1.InstallModeTypeOwnNamespace
	case len(targets) == 1:
		needed = v1alpha1.InstallModeTypeSingleNamespace
	case len(targets) > 1:
		needed = v1alpha1.InstallModeTypeMultiNamespace
	}
	if slices.Contains(modes, v1alpha1.InstallMode{Type: needed, Supported: true}) {
		return ""
	}
	return fmt.Sprintf("%s InstallModeType not supported, and OperatorGroup %s needs it", needed, group.Name)
}

// UpgradeBlocker returns the reason why a release must not be replaced; "" if it may.
func UpgradeBlocker(condition *operatorsv2.OperatorCondition) string {
	found := meta.FindStatusCondition(condition.Spec.Overrides, operatorsv2.Upgradeable)
	if found == nil {
		found = meta.FindStatusCondition(condition.Spec.Conditions, operatorsv2.Upgradeable)
	}
	if found == nil || found.Status != metav1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf("operator %s is not upgradeable: %s", condition.Name, found.Message)
}
