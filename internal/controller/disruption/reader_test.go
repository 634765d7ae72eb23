package disruption

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

var (
	early = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	later = early.Add(time.Hour)
	wrong = early.Add(70 * 365 * 24 * time.Hour) // by the clock of a host
)

// scene contains the objects in the API server.
type scene struct {
	t       *testing.T
	objects []client.Object
}

func (s *scene) addObject(o client.Object) { s.objects = append(s.objects, o) }

func (s *scene) addInstance(name, machine string, change func(*v1alpha1.WindowsInstance)) {
	i := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: name,
		UID: types.UID("i-" + name), CreationTimestamp: metav1.NewTime(early)}}
	i.Spec.Source.ConfigMapKey = name
	if machine != "" {
		i.Spec.Source = v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: machine, UID: types.UID("m-" + machine)}}
	}
	i.Status.NodeRef = &v1alpha1.NodeReference{Name: name}
	if change != nil {
		change(i)
	}
	s.addObject(i)
}

func (s *scene) addNode(name string, ready bool, change func(*corev1.Node)) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(early), Labels: map[string]string{corev1.LabelOSStable: "windows"},
		Annotations: map[string]string{v1alpha1.AnnotationVersion: "12.0.0"},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status,
		LastTransitionTime: metav1.NewTime(wrong)}}
	if change != nil {
		change(n)
	}
	s.addObject(n)
}

func (s *scene) addMachineSet(name string, replicas int32) {
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name,
		UID: types.UID("s-" + name)}}
	set.Spec.Replicas = ptr.To(replicas)
	s.addObject(set)
}

func (s *scene) addMachine(name, set, phase string, change func(*machinev1beta1.Machine)) {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.MachineNamespace, Name: name, UID: types.UID("m-" + name),
		Labels: map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows},
	}}
	if set != "" {
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: set, UID: types.UID("s-" + set),
			Controller: ptr.To(true)}}
	}
	m.Status.Phase, m.Status.NodeRef = ptr.To(phase), &corev1.ObjectReference{Name: name}
	if change != nil {
		change(m)
	}
	s.addObject(m)
}

func addStartupTaint(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
}

// read reads the scene. refuse returns the error of a kind of list.
func (s *scene) read(settings disruptionpolicy.Settings, refuse func(client.ObjectList) error,
	disruptions ...v1alpha1.Disruption) (*fleetState, error) {
	s.t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		machinev1beta1.Install(scheme)); err != nil {
		s.t.Fatal(err)
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.objects...).Build(),
		interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				if refuse != nil {
					if err := refuse(list); err != nil {
						return err
					}
				}
				return c.List(ctx, list, options...)
			},
		})
	f, err := fleet.Read(s.t.Context(), c, "wmco")
	if err != nil {
		return nil, err
	}
	return newFleetState(f, settings, disruptions), nil
}

func (s *scene) nodesByInstance(settings disruptionpolicy.Settings,
	disruptions ...v1alpha1.Disruption) map[string]disruptionpolicy.Node {
	s.t.Helper()
	f, err := s.read(settings, nil, disruptions...)
	if err != nil {
		s.t.Fatal(err)
	}
	byName := map[string]disruptionpolicy.Node{}
	for _, n := range f.pool.Nodes {
		byName[n.Instance] = n
	}
	return byName
}

func TestReader_AssignsNodesToPools(t *testing.T) {
	s := &scene{t: t}
	s.addMachineSet("workers", 1)
	s.addMachine("of-set", "workers", "Running", nil)
	s.addMachine("alone", "", "Running", nil)
	for _, name := range []string{"of-set", "alone"} {
		s.addInstance(name, name, nil)
		s.addNode(name, true, nil)
	}
	for name, zone := range map[string]string{"listed": "", "west": "west"} {
		s.addInstance(name, "", nil)
		s.addNode(name, true, func(n *corev1.Node) { n.Labels["zone"] = zone })
	}
	nodes := s.nodesByInstance(disruptionpolicy.Settings{HostPoolLabel: "zone"})
	for name, want := range map[string]string{"of-set": "MachineSet/workers", "alone": disruptionpolicy.MachinesPool,
		"listed": "Hosts", "west": "Hosts/west"} {
		if got := nodes[name].Pool; got != want {
			t.Errorf("%s is in pool %q, want %q", name, got, want)
		}
	}
}

func TestReader_ReportsNodesInService(t *testing.T) {
	s := &scene{t: t}
	s.addInstance("works", "", nil)
	s.addNode("works", true, nil)
	s.addInstance("changed", "", func(i *v1alpha1.WindowsInstance) {
		i.Status.Readiness = &v1alpha1.Readiness{Ready: true, Since: metav1.NewTime(later)}
	})
	s.addNode("changed", true, nil)
	s.addInstance("broken", "", nil)
	s.addNode("broken", false, nil)
	s.addInstance("new", "", nil)
	s.addNode("new", true, addStartupTaint)
	s.addInstance("unseen", "", nil)
	again := func(i *v1alpha1.WindowsInstance) {
		i.Status.Version = "12.0.0"
		i.Status.Readiness = &v1alpha1.Readiness{Since: metav1.NewTime(later)}
	}
	s.addInstance("registers-again", "", again)
	s.addNode("registers-again", true, addStartupTaint)
	s.addInstance("lost-its-node", "", again)
	s.addInstance("given-up", "", func(i *v1alpha1.WindowsInstance) {
		i.Annotations = map[string]string{v1alpha1.AnnotationForgetHost: "true"}
	})
	s.addNode("given-up", false, nil)
	s.addMachine("older", "", "Running", nil)
	s.addInstance("older", "older", func(i *v1alpha1.WindowsInstance) { i.Status.NodeRef = nil })
	s.addNode("older", true, nil)

	nodes := s.nodesByInstance(disruptionpolicy.Settings{}, v1alpha1.Disruption{Instance: "unseen", InstanceUID: "i-unseen"})
	type nodeState struct {
		ready, gone bool
		since       time.Time
	}
	want := map[string]nodeState{
		"works":           {ready: true, since: early},
		"changed":         {ready: true, since: later}, // the kubelet was always Ready
		"broken":          {},                          // only the host knows the time
		"registers-again": {since: early},
		"lost-its-node":   {},
		"given-up":        {gone: true},
		"unseen":          {}, // being disrupted
		"older":           {ready: true, since: early},
	}
	got := map[string]nodeState{}
	for name, n := range nodes {
		got[name] = nodeState{n.Ready, n.Gone, n.Since.UTC()}
	}
	for name, w := range want {
		if g, ok := got[name]; !ok || g != w {
			t.Errorf("%s: %+v (%t), want %+v", name, g, ok, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%+v", got)
	}
	if nodes["older"].Node != "older" {
		t.Errorf("%+v", nodes["older"])
	}
}

func TestReader_CountsMachinesOfSets(t *testing.T) {
	deleting := func(m *machinev1beta1.Machine) {
		m.DeletionTimestamp, m.Finalizers = ptr.To(metav1.NewTime(later)), []string{machinev1beta1.MachineFinalizer}
		m.Status.Conditions = []machinev1beta1.Condition{
			{Type: machinev1beta1.MachineDrainable, Status: corev1.ConditionTrue},
			{Type: machinev1beta1.MachineDrained, Status: corev1.ConditionFalse,
				Message: "could not drain machine: web-1 cannot be evicted"},
		}
	}
	s := &scene{t: t}
	s.addMachineSet("workers", 8)
	for name, phase := range map[string]string{"works": "Running", "broken": "Running", "joins": "Running",
		"made": "Provisioning", "failed": "Failed"} {
		s.addMachine(name, "workers", phase, nil)
	}
	s.addMachine("ignored", "workers", "Running", func(m *machinev1beta1.Machine) { m.Labels[v1alpha1.LabelIgnore] = "true" })
	s.addMachine("deleted", "workers", "Running", deleting)
	for _, name := range []string{"works", "broken", "joins", "failed", "ignored", "deleted"} {
		s.addInstance(name, name, nil)
		change := func(*corev1.Node) {}
		if name == "joins" {
			change = addStartupTaint
		}
		s.addNode(name, name != "broken", change)
	}
	s.addMachineSet("linux", 3)
	f, err := s.read(disruptionpolicy.Settings{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := disruptionpolicy.MachineSet{
		Name: "workers", Replicas: 8, Running: 1, Failed: 2,
		Missing: 4, // joining, being created, deleted, and not created yet
		Staying: []string{"broken", "failed", "ignored", "joins", "made", "works"},
		Leaving: []disruptionpolicy.LeavingMachine{{Name: "deleted", Why: "could not drain machine: web-1 cannot be evicted"}},
	}
	if len(f.pool.MachineSets) != 1 || !reflect.DeepEqual(f.pool.MachineSets[0], want) {
		t.Errorf("%+v, want %+v", f.pool.MachineSets, want)
	}
	for _, n := range f.pool.Nodes {
		if gone := n.Instance == "failed" || n.Instance == "ignored" || n.Instance == "deleted"; n.Gone != gone {
			t.Errorf("%s is gone: %t", n.Instance, n.Gone)
		}
	}
}

func TestReader_MissingMachineAPIIsNoError(t *testing.T) {
	machines := schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}
	for name, answer := range map[string]error{
		"no such kind": fmt.Errorf("map: %w",
			&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: machines.Group, Kind: "Machine"}}),
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{t: t}
			s.addInstance("listed", "", nil)
			s.addNode("listed", true, nil)
			f, err := s.read(disruptionpolicy.Settings{}, func(list client.ObjectList) error {
				switch list.(type) {
				case *machinev1beta1.MachineList, *machinev1beta1.MachineSetList:
					return answer
				}
				return nil
			})
			if err != nil || len(f.Nodes) != 1 || len(f.MachineSets) != 0 {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
	t.Run("what cannot be read is an error, and nothing is decided", func(t *testing.T) {
		for _, answer := range []error{apierrors.NewForbidden(machines, "", nil), apierrors.NewNotFound(machines, "")} {
			s := &scene{t: t}
			if _, err := s.read(disruptionpolicy.Settings{}, func(list client.ObjectList) error {
				if _, ok := list.(*machinev1beta1.MachineList); ok {
					return answer
				}
				return nil
			}); err == nil {
				t.Errorf("no error after %v", answer)
			}
		}
	})
}
