package csr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const (
	namespace = "wmco"
	winNode   = "win-a"
	privateIP = "10.0.128.7"
	cloudName = "ip-10-0-128-7.ec2.internal"
)

// newServingRequest returns a kubelet's request for a serving certificate.
func newServingRequest(t *testing.T, node string, names []string, addresses ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, DNSNames: names,
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:" + node,
			Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
}

// newRenewalRequest returns a kubelet's request to renew its client certificate, created by a user.
func newRenewalRequest(t *testing.T, user, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := newServingRequest(t, node, nil)
	csr.Spec.SignerName, csr.Spec.Username = certificatesv1.KubeAPIServerClientKubeletSignerName, user
	csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	return csr
}

// newMachineInstance returns the instance of a Machine with the node win-a.
func newMachineInstance() *v1alpha1.WindowsInstance {
	return &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: winNode},
		Spec: v1alpha1.WindowsInstanceSpec{
			Address: privateIP, DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace, Name: winNode,
				UID: "machine-uid"}},
		},
		Status: v1alpha1.WindowsInstanceStatus{
			NodeRef: &v1alpha1.NodeReference{Name: winNode, Confirmed: true}, Host: &v1alpha1.HostStatus{Name: winNode,
				Addresses: []string{privateIP}},
		},
	}
}

// newRegisteredNode returns the Node that the instance's kubelet has registered.
func newRegisteredNode() *corev1.Node { return namedNode(winNode) }

// namedNode returns a Node. The Node of the instance is a Windows node.
func namedNode(name string, addresses ...corev1.NodeAddress) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: "linux"}}, Status: corev1.NodeStatus{Addresses: addresses}}
	if name == winNode {
		node.Labels[corev1.LabelOSStable] = "windows"
	}
	return node
}

func newMachine() *machinev1beta1.Machine {
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: winNode, UID: "machine-uid"},
		Status: machinev1beta1.MachineStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: privateIP}, {Type: corev1.NodeInternalDNS, Address: cloudName},
		}},
	}
}

// awsClusterSource is a cluster on AWS.
type awsClusterSource struct{}

func (awsClusterSource) Current() (nodespec.Cluster, error) {
	return nodespec.Cluster{Platform: "AWS", ServiceCIDRs: []string{"172.30.0.0/16"},
		APIServerInternalURL: "https://api-int.lab.example.com:6443"}, nil
}

// fixture is the controller with an API server in memory.
type fixture struct {
	*Reconciler
	api       client.Client
	watched   client.WithWatch // same object as api
	clientset *kubefake.Clientset
	recorder  *events.FakeRecorder
	clock     *clocktesting.FakeClock
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	var requests []runtime.Object
	for _, object := range objects {
		if csr, ok := object.(*certificatesv1.CertificateSigningRequest); ok {
			requests = append(requests, csr.DeepCopy())
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, index := range index.Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Values)
	}
	api := builder.Build()
	f := &fixture{
		api: api, watched: api,
		clientset: kubefake.NewClientset(requests...), recorder: events.NewFakeRecorder(100),
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)),
	}
	f.Reconciler = &Reconciler{Client: f.api, Live: f.api, Clientset: f.clientset, Namespace: namespace,
		Events: f.recorder, Cluster: awsClusterSource{}, Clock: f.clock}
	return f
}

func (f *fixture) reconcileRequest(t *testing.T, csr string) ctrl.Result {
	t.Helper()
	result, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: csr}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (f *fixture) drainEvents() (recorded []string) {
	for len(f.recorder.Events) > 0 {
		recorded = append(recorded, <-f.recorder.Events)
	}
	return recorded
}

// conditionTypes returns the types of the conditions of a request.
func (f *fixture) conditionTypes(t *testing.T, csr string) (types []certificatesv1.RequestConditionType) {
	t.Helper()
	present, err := f.clientset.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range present.Status.Conditions {
		types = append(types, condition.Type)
	}
	return types
}

// listWrites returns the write requests of the controller.
func (f *fixture) listWrites() (writes []string) {
	for _, action := range f.clientset.Actions() {
		if action.GetVerb() != "get" {
			writes = append(writes, action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource())
		}
	}
	return writes
}

// decideRequest reconciles the request once, and reports whether it was approved and the events.
func decideRequest(t *testing.T, csr *certificatesv1.CertificateSigningRequest, objects ...client.Object) (approved bool,
	recorded []string) {
	t.Helper()
	f := newFixture(t, append(objects, csr)...)
	f.reconcileRequest(t, csr.Name)
	return slices.Contains(f.conditionTypes(t, csr.Name), certificatesv1.CertificateApproved), f.drainEvents()
}
