package instance

import (
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// createAnother creates a second instance, with a Node.
func (x *trial) createAnother(ref *v1alpha1.NodeReference) {
	x.t.Helper()
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "another"}}
	instance.Spec = v1alpha1.WindowsInstanceSpec{
		Address: "10.0.0.99", Source: v1alpha1.Source{ConfigMapKey: "10.0.0.99"}, DesiredState: v1alpha1.DesiredStateNode,
	}
	if err := x.Client.Create(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
	instance.Status.NodeRef = ref
	if err := x.Client.Status().Update(x.t.Context(), instance); err != nil {
		x.t.Fatal(err)
	}
}

// A kubelet may write the annotations of its own Node. R-167
func TestRemoval_ForgedAnnotationsDoNotKeepNode(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"without a word whose it is": nil,
		"as one of nobody":           {v1alpha1.AnnotationInstance: "nobody"},
		"as one of another instance": {v1alpha1.AnnotationInstance: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			instance := machineInstance()
			x.asNode(instance, x.key.Hash())
			x.createAnother(&v1alpha1.NodeReference{Name: "elsewhere", UID: "2", Confirmed: true})
			instance, _ = x.reconcile()
			node := x.getNode()
			node.Annotations = annotations
			if err := x.Client.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			x.changeSpec(instance, setRemoved)
			if left, _ := x.reconcile(); left != nil || x.getNode() != nil {
				t.Errorf("left is %v, Node %v", left, x.getNode())
			}
		})
	}
}

func TestNode_ForgedAnnotationsDoNotBindNode(t *testing.T) {
	x := newTrial(t, machineInstance())
	spoofed := readyNode("abc")
	spoofed.Name, spoofed.UID = "liar", "2"
	spoofed.Annotations[v1alpha1.AnnotationHostKey] = encodeKey(newSSHHost(t, x.key.AuthorizedKey()).hostKey.PublicKey())
	if err := x.Client.Create(t.Context(), spoofed); err != nil {
		t.Fatal(err)
	}
	x.createAnother(&v1alpha1.NodeReference{Name: "liar", UID: "2", Confirmed: true})
	instance, _ := x.reconcile()
	if ref := instance.Status.NodeRef; ref != nil && ref.Name == "liar" {
		t.Errorf("the host that is to join is Node %s", ref.Name)
	}
	if instance.Status.Summary == "HostKeyChanged" || x.countDials() == 0 {
		t.Errorf("the host is held up: %s, %d connections", instance.Status.Summary, x.countDials())
	}
}

// A kubelet may have a pending certificate request when its host is removed. R-167
func TestRemoval_DeletesCertificateRequests(t *testing.T) {
	listed := joinedInProgress()
	listed.Spec.Source = v1alpha1.Source{ConfigMapKey: listed.Spec.Address}
	listed.Status.HostKey = nil // nothing to restore
	for name, instance := range map[string]*v1alpha1.WindowsInstance{"of a Machine": joinedInProgress(),
		"that was listed": listed} {
		t.Run(name, func(t *testing.T) { requestsGoWith(t, instance) })
	}
}

func requestsGoWith(t *testing.T, instance *v1alpha1.WindowsInstance) {
	t.Helper()
	request := func(name, user, signer, instance string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelInstance: instance}},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Username: user, SignerName: signer},
		}
	}
	instance.Status.NodeRef.UID = "node-uid"
	x := newTrial(t, instance)
	const operator, kubelet = "system:serviceaccount:wmco:operator", "system:node:" + machine
	for _, csr := range []*certificatesv1.CertificateSigningRequest{
		request("made-for-it", operator, certificatesv1.KubeAPIServerClientKubeletSignerName, machine),
		request("its-renewal", kubelet, certificatesv1.KubeAPIServerClientKubeletSignerName, ""),
		request("its-serving", kubelet, certificatesv1.KubeletServingSignerName, ""),
		request("made-for-another", operator, certificatesv1.KubeAPIServerClientKubeletSignerName, "another"),
		request("anothers-serving", "system:node:another", certificatesv1.KubeletServingSignerName, ""),
	} {
		if _, err := x.clientset.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := x.reconcile(); left != nil {
		t.Fatalf("left is %v", left)
	}
	list, err := x.clientset.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, csr := range list.Items {
		names = append(names, csr.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"anothers-serving", "made-for-another"}) {
		t.Errorf("left are %q", names)
	}
}

// The lists of a fleet take longer than a reconcile waits. The results of jobs count in the meantime.
func TestReconcile_CompletesWithoutWaitForLists(t *testing.T) {
	x, _, _ := hostToJoin(t, "None")
	x.ListWaitTimeout = 0
	x.joinNode()
	x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.DesiredState = v1alpha1.DesiredStateRemoved })
	key := client.ObjectKey{Namespace: operatorNamespace, Name: machine}
	for deadline := time.Now().Add(wallClockTimeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // lists are read meanwhile
		x.reconcileAll(key)
		if err := x.Client.Get(t.Context(), key, &v1alpha1.WindowsInstance{}); apierrors.IsNotFound(err) {
			return
		}
		x.clock.Step(time.Second)
	}
	t.Errorf("it is not given back: %+v", x.getInstance().Status)
}
