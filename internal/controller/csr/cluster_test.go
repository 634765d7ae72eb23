package csr_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/csr"
	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// lab does not approve renewals itself, so that every approval comes from this controller.
var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift, NoRenewalApproval: true})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// addresses are the addresses of the Windows hosts.
var addresses = map[string]string{"win-a": "10.9.0.1", "win-b": "10.9.0.2"}

// stage is a real API server with only this controller, which uses the operator's rights. The test plays the
// kubelets.
type stage struct {
	t              *testing.T
	config         *rest.Config
	operatorConfig *rest.Config
	admin          client.Client
	scheme         *runtime.Scheme
}

func newStage(t *testing.T) *stage {
	t.Helper()
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &stage{t: t, config: r.Config, scheme: runtime.NewScheme()}
	if s.operatorConfig, err = r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(clientgoscheme.AddToScheme(s.scheme), machinev1beta1.Install(s.scheme),
		v1alpha1.AddToScheme(s.scheme)); err != nil {
		t.Fatal(err)
	}
	if s.admin, err = client.New(r.Config, client.Options{Scheme: s.scheme}); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the controller until the returned function is called, or the test ends.
func (s *stage) run() (stop func()) {
	s.t.Helper()
	mgr, err := ctrl.NewManager(s.operatorConfig, ctrl.Options{
		Scheme: s.scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{testenv.Namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Node{}: {Label: labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: "windows"})},
				&certificatesv1.CertificateSigningRequest{}: csr.Cached(),
			},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(s.operatorConfig)
	if err != nil {
		s.t.Fatal(err)
	}
	reconciler := &csr.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clientset: clientset, Namespace: testenv.Namespace,
		Events: mgr.GetEventRecorder("test"), Clock: clock.RealClock{},
	}
	if err := errors.Join(index.Add(s.t.Context(), mgr.GetFieldIndexer()), reconciler.SetupWithManager(mgr)); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

func (s *stage) requireNoError(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// createNode creates a Node.
func (s *stage) createNode(name, system string) *corev1.Node {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: system}}}
	s.requireNoError(s.admin.Create(s.t.Context(), node))
	return node
}

// createInstance creates the instance of a host with the node name.
func (s *stage) createInstance(name string) *v1alpha1.WindowsInstance {
	s.t.Helper()
	instance := &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name},
		Spec: v1alpha1.WindowsInstanceSpec{Address: addresses[name],
			Source: v1alpha1.Source{ConfigMapKey: addresses[name]}},
	}
	s.requireNoError(s.admin.Create(s.t.Context(), instance))
	instance.Status.NodeRef = &v1alpha1.NodeReference{Name: name, Confirmed: true}
	s.requireNoError(s.admin.Status().Update(s.t.Context(), instance))
	return instance
}

// bindNode records the Node in the instance's status.
func (s *stage) bindNode(instance *v1alpha1.WindowsInstance, node *corev1.Node) {
	s.t.Helper()
	instance.Status.NodeRef.UID = string(node.UID)
	s.requireNoError(s.admin.Status().Update(s.t.Context(), instance))
}

func (s *stage) createRequest(name, node, signer string, names ...string) *certificatesv1.CertificateSigningRequest {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.requireNoError(err)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node,
		Organization: []string{"system:nodes"}}}
	purpose := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		purpose = certificatesv1.UsageServerAuth
		template.DNSNames = append(names, node)
		if ip := net.ParseIP(addresses[node]); ip != nil {
			template.IPAddresses = []net.IP{ip}
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	s.requireNoError(err)
	as := rest.CopyConfig(s.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes",
		"system:authenticated"}}
	kubelet, err := kubernetes.NewForConfig(as)
	s.requireNoError(err)
	created, err := kubelet.CertificatesV1().CertificateSigningRequests().Create(s.t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose},
			},
		}, metav1.CreateOptions{})
	s.requireNoError(err)
	return created
}

const (
	serving = certificatesv1.KubeletServingSignerName
	renewal = certificatesv1.KubeAPIServerClientKubeletSignerName
)

// awaitSigned waits until the requests are approved and signed.
func (s *stage) awaitSigned(names ...string) {
	s.t.Helper()
	for _, name := range names {
		request := &certificatesv1.CertificateSigningRequest{}
		err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, 3*time.Minute, true,
			func(ctx context.Context) (bool, error) {
				err := s.admin.Get(ctx, client.ObjectKey{Name: name}, request)
				return err == nil && len(request.Status.Certificate) > 0, err
			})
		if err != nil {
			s.t.Fatalf("request %s is not signed: %v: %+v", name, err, request.Status.Conditions)
		}
	}
}

// in a cluster with fifty Linux nodes, only the requests of the Windows node are
// decided: requests from before the operator started, new requests, and requests from a time when the operator was
// down.
func TestController_DecidesRequestsOfWindowsNodesOnly(t *testing.T) {
	s := newStage(t)
	var foreign []*certificatesv1.CertificateSigningRequest
	for i := range 50 {
		name := fmt.Sprintf("worker-%d", i)
		s.createNode(name, "linux")
		foreign = append(foreign, s.createRequest("serving-"+name, name, serving), s.createRequest("renewal-"+name, name, renewal))
	}
	// A Linux node with a name like the Windows node's, and a request with the serving name of a Windows node.
	s.createNode("win-a2", "linux")
	foreign = append(foreign, s.createRequest("serving-win-a2", "win-a2", serving, "win-a"),
		s.createRequest("renewal-win-a2", "win-a2", renewal))

	instance := s.createInstance("win-a")
	s.bindNode(instance, s.createNode("win-a", "windows"))
	s.createRequest("serving-before", "win-a", serving)
	s.createRequest("renewal-before", "win-a", renewal)
	stop := s.run()
	s.awaitSigned("serving-before", "renewal-before")

	foreign = append(foreign, s.createRequest("serving-late", "worker-1", serving), s.createRequest("renewal-late", "worker-1", renewal))
	s.createRequest("serving-of-more", "win-a", serving, "worker-1")
	s.createRequest("serving-then", "win-a", serving)
	s.createRequest("renewal-then", "win-a", renewal)
	s.awaitSigned("serving-then", "renewal-then")
	stop()

	s.createRequest("serving-away", "win-a", serving)
	s.createRequest("renewal-away", "win-a", renewal)
	s.run()
	s.awaitSigned("serving-away", "renewal-away")

	for _, before := range foreign {
		request := &certificatesv1.CertificateSigningRequest{}
		s.requireNoError(s.admin.Get(t.Context(), client.ObjectKeyFromObject(before), request))
		if request.ResourceVersion != before.ResourceVersion {
			t.Errorf("request %s of %s was touched: %+v", request.Name, request.Spec.Username, request.Status)
		}
	}
	refused := &certificatesv1.CertificateSigningRequest{}
	s.requireNoError(s.admin.Get(t.Context(), client.ObjectKey{Name: "serving-of-more"}, refused))
	if len(refused.Status.Conditions) > 0 {
		t.Errorf("a request with the name of another node was decided on: %+v", refused.Status.Conditions)
	}
}

// a kubelet creates its request while registering the Node, before the operator observes the Node.
func TestController_EarlyRequestApprovedAfterBind(t *testing.T) {
	s := newStage(t)
	s.run()
	instance := s.createInstance("win-b")
	s.createRequest("serving-early", "win-b", serving)
	node := s.createNode("win-b", "windows")
	s.awaitSigned("serving-early")

	// The Node is deleted and registered again. Until the operator has bound the new Node, the owner is unknown.
	s.bindNode(instance, node)
	s.requireNoError(s.admin.Delete(t.Context(), node))
	s.createRequest("serving-again", "win-b", serving)
	again := s.createNode("win-b", "windows")
	s.bindNode(instance, again)
	s.awaitSigned("serving-again")
}
