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
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const (
	namespace = "wmco"
	winNode   = "win-a"
	privateIP = "10.0.128.7"
	cloudName = "ip-10-0-128-7.ec2.internal"
)

// asked is a kubelet's request for a serving certificate.
func asked(t *testing.T, node string, names []string, addresses ...string) *certificatesv1.CertificateSigningRequest {
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
			SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
}

// instance is that of a Machine whose node is called win-a.
func instance() *v1alpha1.WindowsInstance {
	return &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: winNode},
		Spec: v1alpha1.WindowsInstanceSpec{
			Address: privateIP, DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace, Name: winNode, UID: "machine-uid"}},
		},
		Status: v1alpha1.WindowsInstanceStatus{
			NodeRef: &v1alpha1.NodeReference{Name: winNode, Confirmed: true}, Host: &v1alpha1.HostStatus{Name: winNode, Addresses: []string{privateIP}},
		},
	}
}

func machine() *machinev1beta1.Machine {
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: winNode, UID: "machine-uid"},
		Status: machinev1beta1.MachineStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: privateIP}, {Type: corev1.NodeInternalDNS, Address: cloudName},
		}},
	}
}

// onAWS is a cluster there.
type onAWS struct{}

func (onAWS) Current() (nodespec.Cluster, error) {
	return nodespec.Cluster{Platform: "AWS", ServiceCIDRs: []string{"172.30.0.0/16"}, APIServerInternalURL: "https://api-int.lab.example.com:6443"}, nil
}

// decide has the controller look at the request once, and tells whether it was approved and what was said.
func decide(t *testing.T, csr *certificatesv1.CertificateSigningRequest, objects ...client.Object) (approved bool, told []string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, csr)...).Build()
	clientset, recorder := kubefake.NewClientset(csr.DeepCopy()), events.NewFakeRecorder(10)
	r := &Reconciler{Client: api, Live: api, Clientset: clientset, Namespace: namespace, Events: recorder, Cluster: onAWS{}}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)}); err != nil {
		t.Fatal(err)
	}
	present, err := clientset.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for len(recorder.Events) > 0 {
		told = append(told, <-recorder.Events)
	}
	return len(present.Status.Conditions) > 0, told
}

func TestServingCertificatesOfHostsOfMachines(t *testing.T) {
	t.Run("with the host's own name and address are approved, whether or not the Machine can be read", func(t *testing.T) {
		if approved, told := decide(t, asked(t, winNode, []string{winNode}, privateIP), instance()); !approved {
			t.Errorf("it is refused: %q", told)
		}
	})
	t.Run("with a name that the cloud has given the Machine are approved", func(t *testing.T) {
		if approved, told := decide(t, asked(t, winNode, []string{winNode, cloudName}, privateIP), instance(), machine()); !approved {
			t.Errorf("it is refused: %q", told)
		}
	})
	for name, c := range map[string]struct {
		names   []string
		objects func() []client.Object
	}{
		"with a name that neither host nor cloud knows": {
			[]string{winNode, "api-int.lab.example.com"}, func() []client.Object { return []client.Object{instance(), machine()} }},
		"with the cloud's name when the Machine is gone": {
			[]string{winNode, cloudName}, func() []client.Object { return []client.Object{instance()} }},
		"with the cloud's name of another Machine that has the name now": {
			[]string{winNode, cloudName}, func() []client.Object {
				another := machine()
				another.UID = "another-uid"
				return []client.Object{instance(), another}
			}},
		"with a name that another node has as well": {
			[]string{winNode, cloudName}, func() []client.Object {
				other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master-0"}}
				other.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: cloudName}}
				return []client.Object{instance(), machine(), other}
			}},
	} {
		t.Run(name+" are left pending, with an event", func(t *testing.T) {
			approved, told := decide(t, asked(t, winNode, c.names, privateIP), c.objects()...)
			if approved || len(told) != 1 || !strings.Contains(told[0], "ServingCertificateRefused") {
				t.Errorf("approved is %t, events are %q", approved, told)
			}
		})
	}
	t.Run("of a Machine that is being deleted are approved as before: its pods have logs still", func(t *testing.T) {
		leaving := instance()
		leaving.Spec.DesiredState, leaving.Spec.DesiredStateReason = v1alpha1.DesiredStateUnmanaged, v1alpha1.ReasonMachineDeleting
		if approved, told := decide(t, asked(t, winNode, []string{winNode}, privateIP), leaving); !approved {
			t.Errorf("it is refused: %q", told)
		}
	})
	t.Run("of a Machine that is gone are nobody's", func(t *testing.T) {
		gone := instance()
		gone.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		if approved, _ := decide(t, asked(t, winNode, []string{winNode}, privateIP), gone); approved {
			t.Error("it is approved")
		}
	})
}

func TestARefusalIsToldOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	csr := asked(t, winNode, []string{winNode, "api-int.lab.example.com"}, privateIP)
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(instance(), csr).Build()
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Client: api, Live: api, Clientset: kubefake.NewClientset(), Namespace: namespace, Events: recorder}
	look := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(csr)}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	look()
	if told := len(recorder.Events); told != 1 {
		t.Errorf("%d events after two looks", told)
	}
	if err := api.Delete(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
	look()
	if len(r.told) > 0 {
		t.Errorf("of a request that is gone it remembers %v", r.told)
	}
}
