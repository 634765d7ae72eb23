package clusterconfig

import (
	"context"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// expectReported creates each object, and waits until an event SettingUnsupported contains its words.
func (r *running) expectReported(t *testing.T, objects map[string]client.Object) {
	t.Helper()
	for words, object := range objects {
		r.createForTest(t, object)
		r.waitUntil(t, words+" is reported", func(ctx context.Context) (bool, error) {
			notes, err := r.listUnsupportedNotes(ctx)
			return slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, words) }), err
		})
	}
}

func TestController_NewMachineConfigSettingReported(t *testing.T) {
	r := start(t)
	r.waitForReads(t)
	name := "settings-" + r.namespace
	workers := &metav1.LabelSelector{MatchLabels: map[string]string{"pools.operator.machineconfiguration.openshift.io/worker": ""}}
	limits := &machineconfigv1.ContainerRuntimeConfiguration{PidsLimit: ptr.To(int64(1024))}
	noDrain := []operatorv1.NodeDisruptionPolicySpecAction{{Type: operatorv1.NoneSpecAction}}
	policy := operatorv1.NodeDisruptionPolicyConfig{SSHKey: operatorv1.NodeDisruptionPolicySpecSSHKey{Actions: noDrain},
		Files: []operatorv1.NodeDisruptionPolicySpecFile{{Path: "/etc/kubernetes/kubelet.conf", Actions: noDrain}}}
	r.expectReported(t, map[string]client.Object{
		"KubeletConfig " + name + ", spec.logLevel": &machineconfigv1.KubeletConfig{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: machineconfigv1.KubeletConfigSpec{MachineConfigPoolSelector: workers, LogLevel: ptr.To(int32(6))}},
		"ContainerRuntimeConfig " + name: &machineconfigv1.ContainerRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: machineconfigv1.ContainerRuntimeConfigSpec{MachineConfigPoolSelector: workers, ContainerRuntimeConfig: limits}},
		"MachineConfiguration cluster": &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
			Spec: operatorv1.MachineConfigurationSpec{
				StaticPodOperatorSpec: operatorv1.StaticPodOperatorSpec{OperatorSpec: operatorv1.OperatorSpec{ManagementState: operatorv1.Managed}},
				NodeDisruptionPolicy:  policy}},
	})
}

func TestController_NewSignaturePolicyReported(t *testing.T) {
	r := start(t)
	r.waitForReads(t)
	policy := configv1.ImageSigstoreVerificationPolicy{RootOfTrust: configv1.PolicyRootOfTrust{
		PolicyType: configv1.PublicKeyRootOfTrust, PublicKey: &configv1.ImagePolicyPublicKeyRootOfTrust{
			KeyData: []byte("-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("A", 64) + "\n-----END PUBLIC KEY-----")}}}
	scopes := []configv1.ImageScope{"registry.example.com"}
	name := "policies-" + r.namespace
	mirrors := []operatorv1alpha1.RepositoryDigestMirrors{{Source: "quay.io/a", Mirrors: []string{"m.example.com/a"}}}
	r.expectReported(t, map[string]client.Object{
		"ClusterImagePolicy " + name: &configv1.ClusterImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: configv1.ClusterImagePolicySpec{Scopes: scopes, Policy: policy}},
		"ImagePolicy " + r.namespace + "/signed": &configv1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "signed"},
			Spec: configv1.ImagePolicySpec{Scopes: scopes, Policy: policy}},
		"ImageContentSourcePolicy " + name: &operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: operatorv1alpha1.ImageContentSourcePolicySpec{RepositoryDigestMirrors: mirrors}},
	})
}
