package machine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source"
	"github.com/windows-machine-config/wmco/internal/controller/source/machine"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift, Audit: true})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// stage is a real API server with only this controller, which uses the operator's rights. The test plays the
// Machine API and the instance controller.
type stage struct {
	t          *testing.T
	admin      client.Client
	mgr        ctrl.Manager
	notices    chan event.GenericEvent
	reconciles atomic.Int64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageWith(t, func(api http.RoundTripper) http.RoundTripper { return api })
}

// newStageWith is newStage for a controller that sends its requests through wrap.
func newStageWith(t *testing.T, wrap transport.WrapperFunc) *stage {
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
	rights, err := r.InstallOperator(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1beta1.Install(scheme),
		v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, notices: make(chan event.GenericEvent)}
	if s.admin, err = client.New(r.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	rights.Wrap(wrap)
	s.mgr, err = ctrl.NewManager(rights, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{testenv.Namespace: {}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	machines, err := machine.NewCache(s.mgr)
	if err != nil {
		t.Fatal(err)
	}
	reconciler := &machine.Reconciler{
		Client: s.mgr.GetClient(), Machines: machines, Live: s.mgr.GetAPIReader(), Namespace: testenv.Namespace,
		Events: s.mgr.GetEventRecorder("test"),
		Cluster: func() (nodespec.Cluster, error) {
			s.reconciles.Add(1)
			return nodespec.Cluster{Platform: "VSphere"}, nil
		},
	}
	if err := reconciler.SetupWithManager(s.mgr, machines, s.notices); err != nil {
		t.Fatal(err)
	}
	s.run()
	return s
}

func (s *stage) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.mgr.Start(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *stage) waitUntil(what string, condition func(ctx context.Context) (bool, error)) {
	s.t.Helper()
	if err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, 3*time.Minute, true,
		condition); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// awaitInstance waits until an instance satisfies the condition.
func (s *stage) awaitInstance(what, name string,
	isDesired func(*v1alpha1.WindowsInstance) bool) *v1alpha1.WindowsInstance {
	s.t.Helper()
	instance := &v1alpha1.WindowsInstance{}
	s.waitUntil(what, func(ctx context.Context) (bool, error) {
		err := s.admin.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: name}, instance)
		return err == nil && isDesired(instance), client.IgnoreNotFound(err)
	})
	return instance
}

func isNode(i *v1alpha1.WindowsInstance) bool {
	return i.Spec.DesiredState == v1alpha1.DesiredStateNode && i.Spec.DesiredStateReason == ""
}

func isUnmanaged(reason string) func(i *v1alpha1.WindowsInstance) bool {
	return func(i *v1alpha1.WindowsInstance) bool {
		return i.Spec.DesiredState == v1alpha1.DesiredStateUnmanaged && i.Spec.DesiredStateReason == reason
	}
}

func isRemoved(i *v1alpha1.WindowsInstance) bool {
	return i.Spec.DesiredState == v1alpha1.DesiredStateRemoved
}

// waitForReconcile waits for two reconciles to start, so that a complete reconcile has run after the call.
func (s *stage) waitForReconcile() {
	s.t.Helper()
	for range 2 {
		before := s.reconciles.Load()
		s.notices <- event.GenericEvent{Object: &corev1.ConfigMap{}}
		s.waitUntil("a pass", func(context.Context) (bool, error) { return s.reconciles.Load() > before, nil })
	}
}

// createMachine creates a Machine in a phase, with the labels.
func (s *stage) createMachine(name, phase, address string, labels map[string]string) *machinev1beta1.Machine {
	s.t.Helper()
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.MachineNamespace, Name: name, Labels: labels,
		// The Machine API deletes a Machine only after its virtual machine.
		Finalizers: []string{machinev1beta1.MachineFinalizer},
	}}
	m.Spec.Labels = map[string]string{v1alpha1.LabelWorker: ""}
	m.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	if err := s.admin.Create(s.t.Context(), m); err != nil {
		s.t.Fatal(err)
	}
	s.reportStatus(m, phase, address)
	return m
}

// createMachineSet creates a MachineSet that no controller reconciles.
func (s *stage) createMachineSet(name string) *machinev1beta1.MachineSet {
	s.t.Helper()
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name}}
	set.Spec.Selector.MatchLabels = map[string]string{"set": name}
	set.Spec.Template.Labels = map[string]string{"set": name}
	if err := s.admin.Create(s.t.Context(), set); err != nil {
		s.t.Fatal(err)
	}
	return set
}

func (s *stage) annotateSet(set *machinev1beta1.MachineSet, strategy string) {
	s.t.Helper()
	before := set.DeepCopy()
	set.Annotations = map[string]string{v1alpha1.AnnotationUpgradeStrategy: strategy}
	if err := s.admin.Patch(s.t.Context(), set, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

func windowsLabels() map[string]string {
	return map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows}
}

// reportStatus sets the status that the Machine API reports.
func (s *stage) reportStatus(m *machinev1beta1.Machine, phase, address string) {
	s.t.Helper()
	s.patchMachine(m, s.admin.Status().Patch, func() {
		m.Status.Phase = &phase
		m.Status.Addresses = nil
		if address != "" {
			m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: m.Name},
				{Type: corev1.NodeInternalIP, Address: address}}
		}
	})
}

func (s *stage) addLabel(m *machinev1beta1.Machine, key, value string) {
	s.t.Helper()
	s.patchMachine(m, s.patchObject, func() { metav1.SetMetaDataLabel(&m.ObjectMeta, key, value) })
}

func (s *stage) removeLabel(m *machinev1beta1.Machine, key string) {
	s.t.Helper()
	s.patchMachine(m, s.patchObject, func() { delete(m.Labels, key) })
}

// completeDeletion completes a deletion: the virtual machine no longer exists.
func (s *stage) completeDeletion(m *machinev1beta1.Machine) {
	s.t.Helper()
	s.patchMachine(m, s.patchObject, func() { m.Finalizers = nil })
}

func (s *stage) patchObject(ctx context.Context, o client.Object, p client.Patch,
	_ ...client.SubResourcePatchOption) error {
	return s.admin.Patch(ctx, o, p)
}

type patchFunc func(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error

func (s *stage) patchMachine(m *machinev1beta1.Machine, patch patchFunc, edit func()) {
	s.t.Helper()
	before := m.DeepCopy()
	edit()
	if err := patch(s.t.Context(), m, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) deleteObject(o client.Object) {
	s.t.Helper()
	if err := s.admin.Delete(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// instancesByName returns all instances, by name.
func (s *stage) instancesByName() map[string]v1alpha1.WindowsInstance {
	s.t.Helper()
	var list v1alpha1.WindowsInstanceList
	if err := s.admin.List(s.t.Context(), &list, client.InNamespace(testenv.Namespace)); err != nil {
		s.t.Fatal(err)
	}
	byName := map[string]v1alpha1.WindowsInstance{}
	for _, i := range list.Items {
		byName[i.Name] = i
	}
	return byName
}

func TestMachines(t *testing.T) {
	s := newStage(t)
	linux := s.createMachine("linux", machinev1beta1.PhaseRunning, "10.0.0.90", map[string]string{})
	master := s.createMachine("master-0", machinev1beta1.PhaseRunning, "10.0.0.91", map[string]string{
		v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows, "machine.openshift.io/cluster-api-machine-role": "master"})

	t.Run("a Machine becomes an instance when it has an address, and not before", func(t *testing.T) {
		m := s.createMachine("win-one", machinev1beta1.PhaseProvisioning, "", windowsLabels())
		s.waitForReconcile()
		if _, ok := s.instancesByName()["win-one"]; ok {
			t.Error("it has an instance while it is being provisioned")
		}
		s.reportStatus(m, machinev1beta1.PhaseProvisioned, "10.0.0.1")
		i := s.awaitInstance("an instance", "win-one", isNode)
		if i.Spec.Address != "10.0.0.1" || i.Spec.Username != "Administrator" || i.Spec.HostName != "win-one" || i.Spec.Source.Machine.UID != m.UID {
			t.Errorf("its spec is %+v", i.Spec)
		}
		if _, ok := i.Spec.Node.Labels[v1alpha1.LabelWorker]; !ok || len(i.Spec.Node.Taints) != 1 {
			t.Errorf("its Node is to carry %+v", i.Spec.Node)
		}
		s.waitUntil("an event on the Machine", func(ctx context.Context) (bool, error) {
			var list eventsv1.EventList
			err := s.admin.List(ctx, &list, client.InNamespace(v1alpha1.MachineNamespace))
			for _, e := range list.Items {
				if e.Regarding.UID == m.UID && e.Reason == "WindowsInstanceCreated" {
					return true, nil
				}
			}
			return false, err
		})
		s.reportStatus(m, machinev1beta1.PhaseRunning, "10.0.0.101")
		s.awaitInstance("the new address", "win-one", func(i *v1alpha1.WindowsInstance) bool { return i.Spec.Address == "10.0.0.101" })
	})
	t.Run("labels decide whether it is left alone", func(t *testing.T) {
		m := s.createMachine("win-label", machinev1beta1.PhaseRunning, "10.0.0.2", windowsLabels())
		s.awaitInstance("an instance", "win-label", isNode)
		s.removeLabel(m, v1alpha1.LabelMachineOSID)
		s.awaitInstance("left alone without the label", "win-label", isUnmanaged(v1alpha1.ReasonMachineIgnored))
		s.addLabel(m, v1alpha1.LabelMachineOSID, v1alpha1.MachineOSIDWindows)
		s.awaitInstance("a node with the label", "win-label", isNode)
		s.addLabel(m, v1alpha1.LabelIgnore, "true")
		s.awaitInstance("left alone when ignored", "win-label", isUnmanaged(v1alpha1.ReasonMachineIgnored))
		s.removeLabel(m, v1alpha1.LabelIgnore)
		s.awaitInstance("a node when not ignored", "win-label", isNode)
	})
	t.Run("a Machine that has failed is left alone", func(t *testing.T) {
		m := s.createMachine("win-failed", machinev1beta1.PhaseRunning, "10.0.0.3", windowsLabels())
		s.awaitInstance("an instance", "win-failed", isNode)
		s.reportStatus(m, machinev1beta1.PhaseFailed, "10.0.0.3")
		s.awaitInstance("left alone", "win-failed", isUnmanaged(v1alpha1.ReasonMachineFailed))
	})
	t.Run("a Machine that is replaced under its name is another host", func(t *testing.T) {
		first := s.createMachine("win-same", machinev1beta1.PhaseRunning, "10.0.0.4", windowsLabels())
		s.awaitInstance("an instance", "win-same", isNode)
		s.deleteObject(first)
		s.awaitInstance("left alone while it is deleted", "win-same", isUnmanaged(v1alpha1.ReasonMachineDeleting))
		s.completeDeletion(first)
		s.awaitInstance("removed when it is gone", "win-same", isRemoved)

		second := s.createMachine("win-same", machinev1beta1.PhaseProvisioned, "10.0.0.5", windowsLabels())
		s.waitForReconcile()
		old := s.awaitInstance("still the first one's", "win-same", isRemoved)
		if old.Spec.Source.Machine.UID != first.UID {
			t.Fatalf("the instance belongs to %s", old.Spec.Source.Machine.UID)
		}
		s.deleteObject(old)
		i := s.awaitInstance("the second one's", "win-same", isNode)
		if i.Spec.Source.Machine.UID != second.UID || i.Spec.Address != "10.0.0.5" {
			t.Errorf("its spec is %+v", i.Spec)
		}
	})
	t.Run("an instance that a user deletes comes back", func(t *testing.T) {
		i := s.awaitInstance("an instance", "win-one", isNode)
		s.deleteObject(i)
		s.awaitInstance("another instance", "win-one", func(again *v1alpha1.WindowsInstance) bool { return again.UID != i.UID })
	})
	t.Run("a MachineSet and the policy say how its Machines are upgraded", func(t *testing.T) { // D-1
		has := func(strategy v1alpha1.UpgradeStrategy) func(*v1alpha1.WindowsInstance) bool {
			return func(i *v1alpha1.WindowsInstance) bool { return i.Spec.UpgradeStrategy == strategy }
		}
		s.awaitInstance("a lone Machine's", "win-one", has(v1alpha1.UpgradeInPlace))
		set := s.createMachineSet("win-set")
		m := s.createMachine("win-set-1", machinev1beta1.PhaseProvisioning, "", windowsLabels())
		s.patchMachine(m, s.patchObject, func() {
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machinev1beta1.GroupVersion.WithKind("MachineSet"))}
		})
		s.reportStatus(m, machinev1beta1.PhaseProvisioned, "10.0.0.6")
		s.awaitInstance("the default", "win-set-1", has(v1alpha1.UpgradeReplace))

		policy := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: v1alpha1.DisruptionPolicyName}}
		policy.Spec.UpgradeStrategy = v1alpha1.UpgradeInPlace
		if err := s.admin.Create(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		s.awaitInstance("the policy's", "win-set-1", has(v1alpha1.UpgradeInPlace))

		s.annotateSet(set, "Replace")
		s.awaitInstance("the annotation's", "win-set-1", has(v1alpha1.UpgradeReplace))
		s.annotateSet(set, "Rolling")
		s.awaitInstance("the policy's, as the annotation is none that is known", "win-set-1", has(v1alpha1.UpgradeInPlace))
		s.waitUntil("an event on the MachineSet", func(ctx context.Context) (bool, error) {
			var list eventsv1.EventList
			err := s.admin.List(ctx, &list, client.InNamespace(v1alpha1.MachineNamespace))
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Regarding.UID == set.UID && e.Reason == "UpgradeStrategyInvalid" && e.Type == corev1.EventTypeWarning
			}), err
		})
	})
	t.Run("a pass with nothing to do writes nothing", func(t *testing.T) {
		s.waitForReconcile()
		before := s.instancesByName()
		writes := writesOfTheOperator(t)
		s.waitForReconcile()
		for name, i := range s.instancesByName() {
			if i.ResourceVersion != before[name].ResourceVersion {
				t.Errorf("%s was written", name)
			}
		}
		for resource, count := range writesOfTheOperator(t) {
			if resource != "events" && count != writes[resource] {
				t.Errorf("%d writes to %s", count-writes[resource], resource)
			}
		}
	})
	t.Run("Machines of Linux and of the control plane have no instance, and no Machine is written to", func(t *testing.T) {
		for _, m := range []*machinev1beta1.Machine{linux, master} {
			if _, ok := s.instancesByName()[m.Name]; ok {
				t.Errorf("%s has an instance", m.Name)
			}
			now := &machinev1beta1.Machine{}
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(m), now); err != nil || now.ResourceVersion != m.ResourceVersion {
				t.Errorf("%s was written to (%v)", m.Name, err)
			}
		}
		writes := writesOfTheOperator(t)
		if writes["windowsinstances"] == 0 {
			t.Error("the audit log does not show the writes of the operator")
		}
		if writes["machines"] != 0 || writes["machinesets"] != 0 {
			t.Errorf("the operator wrote: %v", writes)
		}
	})
}

// writesOfTheOperator returns the number of the operator's writing requests in the audit log, by resource.
func writesOfTheOperator(t *testing.T) map[string]int {
	t.Helper()
	file, err := os.Open(lab.Cluster(t).AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	writes := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource string }
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue // incomplete line
		}
		switch entry.Verb {
		case "create", "patch", "update", "delete", "deletecollection":
			if entry.User.Username == "system:serviceaccount:"+testenv.Namespace+":windows-machine-config-operator" {
				writes[entry.ObjectRef.Resource]++
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return writes
}

// A change that was decided for an instance must not affect a later instance with the same name.
func TestChange_AppliesToItsInstanceOnly(t *testing.T) {
	s := newStage(t)
	former := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: "reused"},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.1.42.7", Username: "Administrator", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: "10.1.42.7"}}}
	next := former.DeepCopy()
	if err := errors.Join(s.admin.Create(t.Context(), former), s.admin.Delete(t.Context(), former.DeepCopy()), s.admin.Create(t.Context(), next)); err != nil {
		t.Fatal(err)
	}
	change, needed := source.Remove(former)
	if !needed {
		t.Fatal("there is nothing to change")
	}
	if done, err := change.Apply(t.Context(), s.admin); done || err == nil {
		t.Errorf("the change of the former instance is in force: %t, error %v", done, err)
	}
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(next), next); err != nil || next.Spec.DesiredState != v1alpha1.DesiredStateNode {
		t.Fatalf("the present instance is to be %s, error %v", next.Spec.DesiredState, err)
	}
	change, _ = source.Remove(next)
	if done, err := change.Apply(t.Context(), s.admin); !done || err != nil {
		t.Errorf("the change of the present instance is in force: %t, error %v", done, err)
	}
}
