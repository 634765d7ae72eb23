package cluster_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The definitions of OpenShift are written to etcd before the API server starts, without validation and
// defaulting.
func TestDefinitions_MatchStorageOfAPIServer(t *testing.T) {
	ctx := t.Context()
	stored, err := apiextensions.NewForConfigOrDie(openshift.Cluster(t).Config).ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Items) == 0 {
		t.Fatal("there is no definition")
	}
	elsewhere := apiextensions.NewForConfigOrDie(plain.Cluster(t).Config).ApiextensionsV1().CustomResourceDefinitions()
	notComparable := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "CreationTimestamp",
		"ResourceVersion", "ManagedFields")
	clone := func(crd apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec,
		}
	}
	for _, crd := range stored.Items {
		t.Run(crd.Name, func(t *testing.T) {
			accepted, err := elsewhere.Create(ctx, clone(crd), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
				FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(accepted, &crd, notComparable,
				cmpopts.IgnoreFields(apiextensionsv1.CustomResourceDefinitionStatus{}, "Conditions", "AcceptedNames")); diff != "" {
				t.Errorf("(-accepted +stored):\n%s", diff)
			}
		})
	}

	t.Run("and their status", func(t *testing.T) {
		crd := stored.Items[0]
		if _, err := elsewhere.Create(ctx, clone(crd), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := elsewhere.Delete(context.Background(), crd.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		var established *apiextensionsv1.CustomResourceDefinition
		awaitCondition(t, "wait for it to be established", func(ctx context.Context) (done bool, err error) {
			established, err = elsewhere.Get(ctx, crd.Name, metav1.GetOptions{})
			// The API server writes both conditions together, and Established is False in the first of two
			// writes.
			return err == nil && slices.ContainsFunc(established.Status.Conditions,
				func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
					return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
				}), err
		})
		if diff := cmp.Diff(established.Status, crd.Status, cmpopts.IgnoreTypes(metav1.Time{})); diff != "" {
			t.Errorf("(-established +stored):\n%s", diff)
		}
	})
}
