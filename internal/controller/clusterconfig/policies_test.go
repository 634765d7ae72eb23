package clusterconfig

import (
	"context"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestASignaturePolicyIsReportedOnceItIsCreated(t *testing.T) {
	r := start(t)
	r.settled(t)
	policy := configv1.ImageSigstoreVerificationPolicy{RootOfTrust: configv1.PolicyRootOfTrust{
		PolicyType: configv1.PublicKeyRootOfTrust, PublicKey: &configv1.ImagePolicyPublicKeyRootOfTrust{
			KeyData: []byte("-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("A", 64) + "\n-----END PUBLIC KEY-----")}}}
	scopes := []configv1.ImageScope{"registry.example.com"}
	name := "policies-" + r.namespace
	mirrors := []operatorv1alpha1.RepositoryDigestMirrors{{Source: "quay.io/a", Mirrors: []string{"m.example.com/a"}}}
	for words, object := range map[string]client.Object{
		"ClusterImagePolicy " + name: &configv1.ClusterImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: configv1.ClusterImagePolicySpec{Scopes: scopes, Policy: policy}},
		"ImagePolicy " + r.namespace + "/signed": &configv1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "signed"},
			Spec: configv1.ImagePolicySpec{Scopes: scopes, Policy: policy}},
		"ImageContentSourcePolicy " + name: &operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: operatorv1alpha1.ImageContentSourcePolicySpec{RepositoryDigestMirrors: mirrors}},
	} {
		r.createForTest(t, object)
		r.await(t, words+" is reported", func(ctx context.Context) (bool, error) {
			notes, err := r.notFollowed(ctx)
			return slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, words) }), err
		})
	}
}
