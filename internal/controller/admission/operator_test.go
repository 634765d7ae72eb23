package admission_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/admission"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func machine(name, system string) *machinev1beta1.Machine {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name,
		Labels: map[string]string{}}}
	if system != "" {
		m.Labels[v1alpha1.LabelMachineOSID] = system
	}
	// The operator that runs beside the test is to leave it alone.
	m.Labels[v1alpha1.LabelIgnore] = "true"
	return m
}

// The operator's token in the hands of somebody else: what its rights let it reach, and its policy does not.
func TestTheOperatorIsHeldToWhatItIsFor(t *testing.T) {
	f := newFixture(t, "")
	ctx := t.Context()

	t.Run("of Secrets it creates the user data for Machines and no other, also where it has the right",
		func(t *testing.T) {
			f := f.within(t)
			f.letOperatorCreateSecrets()
			for what, other := range map[string]*corev1.Secret{
				"of another name":      secret(v1alpha1.MachineNamespace, "worker-user-data"),
				"in another namespace": secret("kube-system", userdata.SecretName),
				"in its own namespace": secret(f.namespace, "cloud-private-key"),
				"with a name of its making": {ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace,
					GenerateName: userdata.SecretName + "-"}},
				"a token of an account": {ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "token",
					Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
					Type: corev1.SecretTypeServiceAccountToken},
			} {
				t.Run(what, func(t *testing.T) { refused(t, f.operator.Create(ctx, other), admission.Operator) })
			}
			userData := secret(v1alpha1.MachineNamespace, userdata.SecretName)
			must(t, f.operator.Create(ctx, userData))
			must(t, f.admin.Delete(ctx, userData))
		})
	t.Run("of Nodes it changes and deletes those with Windows and no other", func(t *testing.T) {
		f := f.within(t)
		f.create(windowsNode(ownNode), linuxNode("worker-0"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
		for _, other := range []string{"worker-0", "bare"} {
			for _, patch := range []client.Patch{
				merge(`{"spec": {"unschedulable": true}}`),
				merge(`{"metadata": {"labels": {"kubernetes.io/os": "windows"}}}`), // to delete it next
			} {
				refused(t, f.operator.Patch(ctx, linuxNode(other), patch), admission.Operator)
			}
			refused(t, f.operator.Delete(ctx, linuxNode(other)), admission.Operator)
		}
		must(t, f.operator.Patch(ctx, windowsNode(ownNode), merge(`{"spec": {"unschedulable": true}}`)))
		must(t, f.operator.Delete(ctx, windowsNode(ownNode)))
	})
	//
	t.Run("of Machines it deletes those with Windows and no other", func(t *testing.T) {
		f := f.within(t)
		labeled := machine("control-plane-2", "Windows")
		labeled.Labels["machine.openshift.io/cluster-api-machine-role"] = "master"
		f.create(machine("win-1", "Windows"), machine("worker-1", "Linux"), machine("control-plane-1", ""), labeled)
		refused(t, f.operator.Delete(ctx, machine("worker-1", "")), admission.Operator)
		refused(t, f.operator.Delete(ctx, machine("control-plane-1", "")), admission.Operator)
		refused(t, f.operator.Delete(ctx, machine("control-plane-2", "")), admission.Operator)
		must(t, f.operator.Delete(ctx, machine("win-1", "")))
	})
	//
	t.Run("it decides on its own requests and on those of nodes", func(t *testing.T) { f.within(t).approvals() })
}

// letOperatorCreateSecrets gives it a right that it does not have, so that only the policy is in the way.
func (f *fixture) letOperatorCreateSecrets() {
	f.Helper()
	const name = "secrets-for-the-operator"
	f.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.namespace, Name: admission.Operator}}},
	)
	f.await("the right is given", func(ctx context.Context) (bool, error) {
		return f.operator.Create(ctx, secret(v1alpha1.MachineNamespace, userdata.SecretName), client.DryRunAll) == nil, nil
	})
}

// approvals are decisions on requests that differ in requester and signer.
func (f *fixture) approvals() {
	f.Helper()
	const (
		clients  = certificatesv1.KubeAPIServerClientSignerName
		kubelets = certificatesv1.KubeAPIServerClientKubeletSignerName
		serving  = certificatesv1.KubeletServingSignerName
	)
	f.letEverybodyAsk()
	node := f.as("system:node:"+ownNode, "system:nodes")
	for name, c := range map[string]struct {
		by      writer
		signer  string
		allowed bool
	}{
		"its own, for a service on a node":    {f.operator, clients, true},
		"its own, for a kubelet":              {f.operator, kubelets, true},
		"its own, to serve as a node":         {f.operator, serving, false},
		"a node's, for its kubelet":           {node, kubelets, true},
		"a node's, to serve":                  {node, serving, true},
		"a node's, to be anybody":             {node, clients, false},
		"somebody's, to be anybody":           {f.as("somebody"), clients, false},
		"somebody's, to be a node":            {f.as("somebody"), kubelets, false},
		"somebody's, to serve as a node":      {f.as("somebody"), serving, false},
		"a bootstrapper's, to be a node":      {f.as("system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"), kubelets, false},
		"of one who is called almost a node":  {f.as("system:nodes:" + ownNode), kubelets, false},
		"of another account of its namespace": {f.as("system:serviceaccount:" + f.namespace + ":default"), clients, false},
	} {
		f.Run(name, func(t *testing.T) {
			asked := request(t, c.signer)
			must(t, c.by.Create(t.Context(), asked))
			t.Cleanup(func() {
				if err := f.admin.Delete(context.WithoutCancel(t.Context()), asked); err != nil {
					t.Error(err)
				}
			})
			asked.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "Test"},
			}
			err := f.operator.SubResource("approval").Update(t.Context(), asked)
			if c.allowed {
				must(t, err)
			} else {
				refused(t, err, admission.Operator)
			}
		})
	}
}

type writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// letEverybodyAsk gives all who are authenticated the right to make certificate requests: that of who may ask is not
// the question here.
func (f *fixture) letEverybodyAsk() {
	f.Helper()
	const name = "everybody-asks"
	f.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"},
				Verbs: []string{"create"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}},
	)
	f.await("everybody may ask", func(ctx context.Context) (bool, error) {
		err := f.as("somebody").Create(ctx, request(f.T, certificatesv1.KubeletServingSignerName), client.DryRunAll)
		return err == nil, nil
	})
}

// request returns one for some certificate: what is in it is for others to judge. Of a node, the API server takes none
// with another name.
func request(t *testing.T, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + ownNode}}, key)
	must(t, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "some-request-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}
