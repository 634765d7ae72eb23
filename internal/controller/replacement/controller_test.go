package replacement

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/queue"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	replacementpolicy "github.com/windows-machine-config/wmco/internal/policy/replacement"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

const (
	namespace = "wmco"
	version   = "12.0.0"
)

func newKey(t *testing.T) (sshkey.Key, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	key, err := sshkey.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return key, content
}

// world is a cluster with a key that was just replaced.
type world struct {
	t            *testing.T
	client       client.Client
	liveRequests int // requests to the API server
	clock        *clocktesting.FakePassiveClock
	recorder     *events.FakeRecorder
	previousKey  sshkey.Key
	currentKey   sshkey.Key
	// previousKeyContent is the replaced private key in the format of the Secret.
	previousKeyContent []byte
	machineCount       int
	gate               *budget
	facts              *nodespec.Cluster
	clusterErr         error // why the cluster facts are unknown
	Reconciler
}

// servedCluster returns the facts of a supported cluster.
func servedCluster() *nodespec.Cluster {
	return &nodespec.Cluster{Platform: "AWS", Version: "5.0.3", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		machinev1beta1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(time.Now()), recorder: events.NewFakeRecorder(100)}
	memory := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.WindowsInstance{}).Build()
	w.client = memory
	counting := interceptor.NewClient(memory, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			w.liveRequests++
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
			w.liveRequests++
			return c.List(ctx, o, options...)
		},
	})
	w.gate = newBudget(memory)
	w.facts = servedCluster()
	w.Reconciler = Reconciler{Client: memory, Live: counting, Namespace: namespace, Version: version, Gate: w.gate,
		Events: w.recorder, Clock: w.clock, Line: support.CurrentLine(),
		Cluster: func() (nodespec.Cluster, error) { return *w.facts, w.clusterErr }}
	w.previousKey, w.previousKeyContent = newKey(t)
	var content []byte
	w.currentKey, content = newKey(t)
	w.createObject(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sshkeysecret.SecretName},
		Data: map[string][]byte{sshkeysecret.SecretKey: content}})
	script, err := userdata.Generate("AWS", w.currentKey.Signer().PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	w.createObject(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: userdata.SecretName},
		Data: map[string][]byte{userdata.SecretKey: script}})
	return w
}

func (w *world) createObject(o client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) updateObject(o client.Object) {
	w.t.Helper()
	if err := w.client.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteObject(o client.Object) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) createMachineSet(name string, replicas int32, secret string) *machinev1beta1.MachineSet {
	w.t.Helper()
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name,
		UID: types.UID(name)}}
	set.Spec.Replicas = ptr.To(replicas)
	set.Spec.Template.Labels = map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows}
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"userDataSecret":{"name":%q}}`, secret)}
	w.createObject(set)
	return set
}

// createMachine creates a running Machine with a Node that was configured with a key, and an instance with a host that
// refuses the current key.
func (w *world) createMachine(set *machinev1beta1.MachineSet, key sshkey.Key) *machinev1beta1.Machine {
	w.t.Helper()
	w.machineCount++
	name := fmt.Sprintf("win-%d", w.machineCount)
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.MachineNamespace, Name: name, UID: types.UID("uid-" + name),
		Finalizers: []string{"machine.machine.openshift.io"},
		Labels:     map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows},
	}}
	if set != nil {
		machine.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set,
			machinev1beta1.GroupVersion.WithKind("MachineSet"))}
	}
	machine.Status.Phase = ptr.To("Running")
	machine.Status.NodeRef = &corev1.ObjectReference{Name: name}
	w.createObject(machine)
	w.createObject(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "windows"},
			Annotations: map[string]string{v1alpha1.AnnotationPubKeyHash: key.Hash(), v1alpha1.AnnotationVersion: version,
				v1alpha1.AnnotationInstance: name}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("instance-" + name),
		Labels: map[string]string{v1alpha1.LabelSource: v1alpha1.SourceMachine}}}
	instance.Spec.Source.Machine = &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace,
		Name: name, UID: machine.UID}
	w.createObject(instance)
	instance.Status.NodeRef, instance.Status.PublicKeyHash = &v1alpha1.NodeReference{Name: name}, key.Hash()
	instance.Status.SSHKeyRejected = true
	if err := w.client.Status().Update(w.t.Context(), instance); err != nil {
		w.t.Fatal(err)
	}
	return machine
}

// reconcile reconciles once and returns the emitted events.
func (w *world) reconcile() (ctrl.Result, []string) {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), ctrl.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	var recorded []string
	for len(w.recorder.Events) > 0 {
		recorded = append(recorded, <-w.recorder.Events)
	}
	return result, recorded
}

// listDeleting returns the Machines with a requested deletion.
func (w *world) listDeleting() []machinev1beta1.Machine {
	w.t.Helper()
	var list, result machinev1beta1.MachineList
	if err := w.client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, machine := range list.Items {
		if !machine.DeletionTimestamp.IsZero() {
			result.Items = append(result.Items, machine)
		}
	}
	return result.Items
}

// completeDeletion completes the deletion of a Machine, with its Node and instance.
func (w *world) completeDeletion(machine *machinev1beta1.Machine) {
	w.t.Helper()
	machine.Finalizers = nil
	w.updateObject(machine)
	w.deleteObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name}})
	w.deleteObject(&v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machine.Name}})
}

// metricValue returns the value of a metric, over all labels.
func metricValue(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func expectEvents(t *testing.T, recorded []string, reasons ...string) {
	t.Helper()
	if len(recorded) != len(reasons) {
		t.Fatalf("events %q, want %q", recorded, reasons)
	}
	for i, reason := range reasons {
		if !strings.Contains(recorded[i], " "+reason+" ") {
			t.Errorf("event %q, want %s", recorded[i], reason)
		}
	}
}

//
func TestReconcile_ReplacesMachinesOneByOne(t *testing.T) {
	w := newWorld(t)
	sets := []*machinev1beta1.MachineSet{w.createMachineSet("one", 1, userdata.SecretName), w.createMachineSet("two", 2, userdata.SecretName)}
	w.createMachine(sets[0], w.previousKey)
	w.createMachine(sets[1], w.previousKey)
	w.createMachine(sets[1], w.previousKey)
	start := metricValue(t, "wmco_machines_replaced_total")
	for left := 3; left > 0; left-- {
		result, recorded := w.reconcile()
		if expectEvents(t, recorded[:2], "MachineReplaced", "MachineReplaced"); left == 3 {
			expectEvents(t, recorded[2:], "ReplacementPending") // the next Machine
		}
		deleting := w.listDeleting()
		if len(deleting) != 1 || result.RequeueAfter != pollInterval {
			t.Fatalf("%d Machines are deleted, result %+v", len(deleting), result)
		}
		if got := metricValue(t, "wmco_machines_outdated"); got != float64(left) {
			t.Errorf("%v Machines wait, want %d", got, left)
		}
		// Until the Machine is deleted and its successor works, no other Machine is deleted.
		waits := len(recorded) - 2
		quiet := func(moment string) {
			_, recorded := w.reconcile()
			waits += len(recorded)
			if n := len(w.listDeleting()); n > 1 {
				t.Fatalf("%s %d Machines are deleted", moment, n)
			}
		}
		quiet("while it goes,")
		set := metav1.GetControllerOf(&deleting[0])
		w.completeDeletion(&deleting[0])
		quiet("between one and the next,")
		var next *machinev1beta1.Machine
		for _, s := range sets {
			if s.UID == set.UID {
				next = w.createMachine(s, w.currentKey)
			}
		}
		node := &corev1.Node{}
		if err := w.client.Get(t.Context(),
			client.ObjectKeyFromObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: next.Name}}), node); err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
		w.updateObject(node)
		quiet("before the next one was proven to work,")
		node.Spec.Taints = nil
		w.updateObject(node)
		if waits != min(left-1, 1) {
			t.Errorf("%d events tell what is waited for", waits)
		}
	}
	w.liveRequests = 0
	result, recorded := w.reconcile()
	expectEvents(t, recorded)
	if !result.IsZero() || w.liveRequests != 0 || metricValue(t, "wmco_machines_outdated") != 0 {
		t.Errorf("with nothing to do the result is %+v, after %d requests", result, w.liveRequests)
	}
	if got := metricValue(t, "wmco_machines_replaced_total"); got != start+3 {
		t.Errorf("%v were counted", got-start)
	}
}

func TestReconcile_IneligibleMachineNotReplaced(t *testing.T) {
	untouched := func(t *testing.T, w *world) {
		t.Helper()
		if deleting := w.listDeleting(); len(deleting) > 0 {
			t.Errorf("%s is deleted", deleting[0].Name)
		}
	}
	t.Run("one that nobody would make again is reported once", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(nil, w.previousKey)
		result, recorded := w.reconcile()
		expectEvents(t, recorded, "MachineNotReplaced")
		if result.RequeueAfter != waitingPollInterval {
			t.Errorf("result %+v", result)
		}
		_, recorded = w.reconcile()
		expectEvents(t, recorded)
		untouched(t, w)
	})
	//
	t.Run("one of the control plane, even if it has the label for Windows and a MachineSet", func(t *testing.T) {
		w := newWorld(t)
		machine := w.createMachine(w.createMachineSet("masters", 1, userdata.SecretName), w.previousKey)
		machine.Labels["machine.openshift.io/cluster-api-machine-role"] = "master"
		w.updateObject(machine)
		_, recorded := w.reconcile()
		expectEvents(t, recorded)
		untouched(t, w)
	})
	t.Run("one whose user data is another's", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(w.createMachineSet("vsphere", 1, "worker-user-data-managed"), w.previousKey)
		_, recorded := w.reconcile()
		expectEvents(t, recorded, "MachineNotReplaced")
		untouched(t, w)
	})
	t.Run("one on vSphere, where the key is in the template and nobody runs the user data", func(t *testing.T) {
		w := newWorld(t)
		set := w.createMachineSet("vsphere", 1, userdata.SecretName)
		set.Spec.Template.Spec.ProviderSpec.Value.Raw = fmt.Appendf(nil, `{"kind":"VSphereMachineProviderSpec","userDataSecret":{"name":%q}}`, userdata.SecretName)
		w.updateObject(set)
		w.createMachine(set, w.previousKey)
		_, recorded := w.reconcile()
		expectEvents(t, recorded, "MachineNotReplaced")
		untouched(t, w)
	})
	t.Run("one without an instance: nobody knows whose Node it is", func(t *testing.T) {
		w := newWorld(t)
		machine := w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		w.createMachine(w.createMachineSet("two", 1, userdata.SecretName), w.previousKey)
		w.deleteObject(&v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machine.Name}})
		_, recorded := w.reconcile()
		expectEvents(t, recorded, "MachineReplaced", "MachineReplaced")
		if deleting := w.listDeleting(); len(deleting) != 1 || deleting[0].Name == machine.Name {
			t.Errorf("deleted are %d Machines", len(deleting))
		}
	})
	t.Run("one whose Node was never configured, though the host refuses the key", func(t *testing.T) {
		w := newWorld(t)
		machine := w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		w.updateObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Labels: map[string]string{corev1.LabelOSStable: "windows"}}})
		_, recorded := w.reconcile()
		expectEvents(t, recorded)
		untouched(t, w)
	})
	t.Run("one whose Node somebody has annotated with another key", func(t *testing.T) {
		w := newWorld(t)
		machine := w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.currentKey)
		w.clock.SetTime(w.clock.Now().Add(replacementpolicy.InPlaceTimeout))
		w.updateObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Labels: map[string]string{corev1.LabelOSStable: "windows"},
			Annotations: map[string]string{v1alpha1.AnnotationPubKeyHash: "0123", v1alpha1.AnnotationInstance: machine.Name}}})
		_, recorded := w.reconcile()
		expectEvents(t, recorded)
		untouched(t, w)
	})
	t.Run("one before the user data has the key", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		w.deleteObject(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: userdata.SecretName}})
		result, recorded := w.reconcile()
		expectEvents(t, recorded, "ReplacementPending")
		if result.RequeueAfter != pollInterval {
			t.Errorf("result %+v", result)
		}
		untouched(t, w)
	})
	t.Run("one whose host takes the previous key, for some minutes", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		secret := &corev1.Secret{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: sshkeysecret.SecretName}, secret); err != nil {
			t.Fatal(err)
		}
		previous, content := newKey(t)
		secret.Data[sshkeysecret.SecretPreviousKey] = content
		w.updateObject(secret)
		w.createMachine(w.createMachineSet("two", 1, userdata.SecretName), previous)
		_, recorded := w.reconcile() // replaces the Machine that does not accept the previous key
		expectEvents(t, recorded, "MachineReplaced", "MachineReplaced", "ReplacementPending")
		w.completeDeletion(&w.listDeleting()[0])
		w.createMachine(&machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "one"}}, w.currentKey)
		_, recorded = w.reconcile()
		expectEvents(t, recorded)
		untouched(t, w)
		w.clock.SetTime(w.clock.Now().Add(replacementpolicy.InPlaceTimeout))
		_, recorded = w.reconcile()
		expectEvents(t, recorded, "MachineReplaced", "MachineReplaced")
	})
	t.Run("one for which the previous key is given later", func(t *testing.T) {
		w := newWorld(t)
		machine := w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		machine.Status.Phase = ptr.To("Provisioned") // so that the replacement waits
		w.updateObject(machine)
		w.reconcile()
		w.clock.SetTime(w.clock.Now().Add(replacementpolicy.InPlaceTimeout))
		secret := &corev1.Secret{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: sshkeysecret.SecretName}, secret); err != nil {
			t.Fatal(err)
		}
		secret.Data[sshkeysecret.SecretPreviousKey] = w.previousKeyContent
		w.updateObject(secret)
		machine.Status.Phase = ptr.To("Running")
		w.updateObject(machine)
		w.reconcile()
		untouched(t, w)
	})
	t.Run("any while there is no key, or none that can be used", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		secret := &corev1.Secret{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: sshkeysecret.SecretName}, secret); err != nil {
			t.Fatal(err)
		}
		secret.Data[sshkeysecret.SecretKey] = []byte("garbage")
		w.updateObject(secret)
		_, recorded := w.reconcile()
		expectEvents(t, recorded)
		w.deleteObject(secret)
		_, recorded = w.reconcile()
		expectEvents(t, recorded)
		untouched(t, w)
	})
	t.Run("one that has changed since it was looked at", func(t *testing.T) {
		w := newWorld(t)
		machine := w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		w.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				changed := &machinev1beta1.Machine{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(machine), changed); err != nil {
					return err
				}
				changed.Status.Phase = ptr.To("Failed")
				if err := c.Update(ctx, changed); err != nil {
					return err
				}
				return c.Delete(ctx, o, options...)
			},
		})
		result, recorded := w.reconcile()
		expectEvents(t, recorded)
		if result.RequeueAfter != pollInterval {
			t.Errorf("result %+v", result)
		}
		untouched(t, w)
		if len(w.gate.released) != 1 || len(w.gate.disruptedSets) > 0 {
			t.Errorf("its node counts as disturbed: %v", w.gate.disruptedSets)
		}
	})
	t.Run("any when the API server does not say all that there is to know", func(t *testing.T) {
		w := newWorld(t)
		w.createMachine(w.createMachineSet("one", 1, userdata.SecretName), w.previousKey)
		failure := errors.New("connection refused")
		w.Live = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
				if _, nodes := o.(*corev1.NodeList); nodes {
					return failure
				}
				return c.List(ctx, o, options...)
			},
		})
		if _, err := w.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, failure) {
			t.Errorf("error %v", err)
		}
		untouched(t, w)
	})
}

func TestWatches_IrrelevantNodeChangesIgnored(t *testing.T) {
	changed := queue.Changed(func(n *corev1.Node) replacementpolicy.Node {
		return fleetNode(n, n.Annotations[v1alpha1.AnnotationPubKeyHash])
	}).UpdateFunc
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}
	for name, test := range map[string]struct {
		change func(n *corev1.Node)
		want   bool
	}{
		"a heartbeat": {func(n *corev1.Node) { n.ResourceVersion = "2" }, false},
		"a label":     {func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a"} }, false},
		"another key": {func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationPubKeyHash: "new"}
		}, true},
		"a node that the operator made unschedulable": {func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationCordoned: "true"}
		}, true},
		"a node that begins to work": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			test.change(after)
			if got := changed(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}
