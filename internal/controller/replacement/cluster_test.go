package replacement_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/disruption"
	"github.com/windows-machine-config/wmco/internal/controller/replacement"
	"github.com/windows-machine-config/wmco/internal/controller/source/machine"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const versionBefore, version = "11.0.0-abc1234", "12.0.0"

// Nodes are reported once, and have no running kubelets.
var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift, NodeGracePeriod: time.Hour})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// fastClock runs faster than real time, because the gate and the controller wait seconds between polls.
type fastClock struct{ start time.Time }

func (c fastClock) Now() time.Time                     { return c.start.Add(time.Since(c.start) * 200) }
func (c fastClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// stage is a real API server with the controller, which uses the operator's rights and the real gate. The test
// plays the Machine API and the instance controller.
type stage struct {
	t     *testing.T
	admin client.WithWatch
	key   sshkey.Key

	mu        sync.Mutex
	replicas  map[string]int // by MachineSet
	addresses int
}

func newStage(t *testing.T, maxUnavailable int) *stage {
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
	s := &stage{t: t, replicas: map[string]int{}}
	unlimited := rest.CopyConfig(r.Config)
	rights.QPS, unlimited.QPS = -1, -1 // as in the operator
	if s.admin, err = client.NewWithWatch(unlimited, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	s.createKeys()
	policy := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace,
		Name: v1alpha1.DisruptionPolicyName}}
	policy.Spec.MaxUnavailable = ptr.To(intstr.FromInt(maxUnavailable))
	policy.Spec.FailureDeadline = &metav1.Duration{Duration: 24 * time.Hour} // because the clock runs fast
	s.createObject(policy)
	s.run(rights, scheme)
	return s
}

// createKeys creates the operator's key and the matching user data.
func (s *stage) createKeys() {
	s.t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		s.t.Fatal(err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if s.key, err = sshkey.Parse(content); err != nil {
		s.t.Fatal(err)
	}
	script, err := userdata.Generate("AWS", s.key.Signer().PublicKey())
	if err != nil {
		s.t.Fatal(err)
	}
	s.createObject(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: sshkeysecret.SecretName},
		Data: map[string][]byte{sshkeysecret.SecretKey: content}})
	s.createObject(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: userdata.SecretName},
		Data: map[string][]byte{userdata.SecretKey: script}})
}

func (s *stage) run(rights *rest.Config, scheme *runtime.Scheme) {
	s.t.Helper()
	mgr, err := ctrl.NewManager(rights, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{testenv.Namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: sshkeysecret.SecretCache(testenv.Namespace),
			},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	clock, recorder := fastClock{time.Now()}, mgr.GetEventRecorder("test")
	gate := disruption.NewGate(disruption.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: testenv.Namespace, Version: version, Operator: "one",
		Events: recorder, Clock: clock,
	})
	reconciler := &replacement.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: testenv.Namespace, Version: version, Gate: gate,
		Events: recorder, Clock: clock, Line: support.CurrentLine(),
		Cluster: func() (nodespec.Cluster, error) {
			return nodespec.Cluster{Platform: "AWS", Version: "5.0.3", Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true}}, nil
		},
	}
	machines, err := machine.NewCache(mgr)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := reconciler.SetupWithManager(mgr, machines); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *stage) createObject(o client.Object) {
	s.t.Helper()
	if err := s.admin.Create(s.t.Context(), o); err != nil {
		s.t.Error(err) // the caller may be another goroutine
	}
	s.t.Cleanup(func() { s.removeObject(o) })
}

// removeObject deletes an object without waiting for finalizers. The object may be missing, or be recreated.
func (s *stage) removeObject(o client.Object) {
	ctx := context.Background()
	if err := s.admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return
	}
	if len(o.GetFinalizers()) > 0 {
		o.SetFinalizers(nil)
		if err := client.IgnoreNotFound(s.admin.Update(ctx, o)); err != nil {
			s.t.Error(err)
		}
	}
	if err := client.IgnoreNotFound(s.admin.Delete(ctx, o)); err != nil {
		s.t.Error(err)
	}
}

// createMachineSet creates a MachineSet with running Machines that were configured by the previous version.
func (s *stage) createMachineSet(name string, replicas int, strategy v1alpha1.UpgradeStrategy, reason string) {
	s.t.Helper()
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name}}
	set.Spec.Replicas = ptr.To(int32(replicas))
	set.Spec.Selector.MatchLabels = map[string]string{"set": name}
	set.Spec.Template.Labels = map[string]string{"set": name, v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows}
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"userDataSecret":{"name":%q}}`, userdata.SecretName)}
	s.createObject(set)
	s.mu.Lock()
	s.replicas[name] = replicas
	s.mu.Unlock()
	for i := range replicas {
		s.createMachine(set, fmt.Sprintf("%s-%d", name, i), versionBefore, strategy, reason)
	}
}

// createMachine creates a running Machine with its instance and a Node that a version has configured. The Node is
// verified last.
func (s *stage) createMachine(set *machinev1beta1.MachineSet, name, configured string,
	strategy v1alpha1.UpgradeStrategy, reason string) {
	s.t.Helper()
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.MachineNamespace, Name: name,
		Labels:     map[string]string{v1alpha1.LabelMachineOSID: v1alpha1.MachineOSIDWindows},
		Finalizers: []string{machinev1beta1.MachineFinalizer},
	}}
	if set != nil {
		m.Labels["set"] = set.Name
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set,
			machinev1beta1.GroupVersion.WithKind("MachineSet"))}
	}
	s.createObject(m)
	s.mu.Lock()
	s.addresses++
	address := fmt.Sprintf("10.0.0.%d", s.addresses)
	s.mu.Unlock()
	instance := &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelSource: v1alpha1.SourceMachine}},
		Spec: v1alpha1.WindowsInstanceSpec{Address: address, Username: "Administrator",
			DesiredState: v1alpha1.DesiredStateNode, UpgradeStrategy: strategy,
			Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: m.Namespace, Name: name, UID: m.UID}}},
	}
	s.createObject(instance)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelOSStable: "windows"},
		Annotations: map[string]string{v1alpha1.AnnotationPubKeyHash: s.key.Hash(), v1alpha1.AnnotationVersion: configured,
			v1alpha1.AnnotationInstance: name},
	}}
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
	s.createObject(node)
	s.patchStatus(node, func() {
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(),
			LastTransitionTime: metav1.Now()}}
	})
	s.patchStatus(instance, func() {
		instance.Status.NodeRef = &v1alpha1.NodeReference{Name: name}
		instance.Status.PublicKeyHash, instance.Status.Version = s.key.Hash(), configured
		instance.Status.SSHKeyRejected = reason == "AuthenticationFailed"
		if reason == v1alpha1.ReasonReplacementPending {
			instance.Status.ReplacementVersion = version
		}
	})
	s.patchStatus(m, func() {
		m.Status.Phase, m.Status.NodeRef = ptr.To(machinev1beta1.PhaseRunning), &corev1.ObjectReference{Name: name}
	})
	before := node.DeepCopy()
	node.Spec.Taints = nil
	if err := s.admin.Patch(s.t.Context(), node, client.MergeFrom(before)); err != nil {
		s.t.Error(err)
	}
}

// patchStatus changes a status. Other clients may write to the object meanwhile.
func (s *stage) patchStatus(o client.Object, change func()) {
	s.t.Helper()
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		s.t.Errorf("%T is no object", o)
		return
	}
	change()
	if err := s.admin.Status().Patch(s.t.Context(), o, client.MergeFrom(before)); err != nil {
		s.t.Error(err)
	}
}

// machineWatch is the summary of the watch on Machines so far.
type machineWatch struct {
	// maxMissing is the maximum number of Machines missing at once, and minRunning the minimum number of running
	// Machines of a set with several replicas.
	maxMissing int
	minRunning map[string]int
	deleted    map[string]bool
	running    map[string]string // sets by Machine name
}

// simulateMachineAPI plays the Machine API during a test: it replaces each deleted Machine.
func (s *stage) simulateMachineAPI() (result func() machineWatch, stop func()) {
	s.t.Helper()
	w := machineWatch{minRunning: map[string]int{}, deleted: map[string]bool{}, running: map[string]string{}}
	events, err := s.admin.Watch(s.t.Context(), &machinev1beta1.MachineList{},
		client.InNamespace(v1alpha1.MachineNamespace))
	if err != nil {
		s.t.Fatal(err)
	}
	var mu sync.Mutex
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		complete := false
		for event := range events.ResultChan() {
			m, ok := event.Object.(*machinev1beta1.Machine)
			if !ok || event.Type == watch.Deleted || m.Labels["set"] == "" {
				continue
			}
			mu.Lock()
			delete(w.running, m.Name)
			if ptr.Deref(m.Status.Phase, "") == machinev1beta1.PhaseRunning && m.DeletionTimestamp.IsZero() {
				w.running[m.Name] = m.Labels["set"]
			}
			complete = s.recordRunning(&w, complete)
			begins := !m.DeletionTimestamp.IsZero() && !w.deleted[m.Name]
			if begins {
				w.deleted[m.Name] = true
			}
			mu.Unlock()
			if begins {
				s.completeReplacement(m)
			}
		}
	}()
	result = func() machineWatch {
		mu.Lock()
		defer mu.Unlock()
		return machineWatch{maxMissing: w.maxMissing, minRunning: maps.Clone(w.minRunning), deleted: maps.Clone(w.deleted),
			running: maps.Clone(w.running)}
	}
	return result, func() {
		events.Stop()
		<-ended
	}
}

// recordRunning records the number of running Machines, once all have run for the first time.
func (s *stage) recordRunning(w *machineWatch, complete bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	bySet, missing := map[string]int{}, 0
	for _, set := range w.running {
		bySet[set]++
	}
	for set, replicas := range s.replicas {
		missing += max(0, replicas-bySet[set])
	}
	if !complete && missing > 0 {
		return false
	}
	w.maxMissing = max(w.maxMissing, missing)
	for set := range s.replicas {
		if least, known := w.minRunning[set]; !known || bySet[set] < least {
			w.minRunning[set] = bySet[set]
		}
	}
	return true
}

// completeReplacement completes a deletion, removes the Node and the instance of the Machine, and creates a successor
// for the MachineSet.
func (s *stage) completeReplacement(m *machinev1beta1.Machine) {
	s.removeObject(&v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: m.Name}})
	s.removeObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}})
	s.removeObject(m)
	set := &machinev1beta1.MachineSet{}
	if err := s.admin.Get(s.t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: m.Labels["set"]},
		set); err != nil {
		s.t.Error(err)
		return
	}
	s.createMachine(set, m.Name+"n", version, v1alpha1.UpgradeReplace, v1alpha1.ReasonSucceeded)
}

func (s *stage) waitUntil(what string, condition func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, 3*time.Minute, true,
		func(context.Context) (bool, error) {
			return condition(), nil
		})
	if err != nil {
		var policy v1alpha1.WindowsDisruptionPolicyList
		_ = s.admin.List(s.t.Context(), &policy)
		s.t.Fatalf("%s: %v; the policy's status is %+v", what, err, policy.Items)
	}
}

// listWarnings returns the warning events about Machines and instances.
func (s *stage) listWarnings() (messages []string) {
	s.t.Helper()
	var list eventsv1.EventList
	if err := s.admin.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	for _, e := range list.Items {
		kind := e.Regarding.Kind
		if e.Type == corev1.EventTypeWarning && (kind == "Machine" || kind == "WindowsInstance") {
			messages = append(messages, e.Reason+": "+e.Note)
		}
	}
	return messages
}

// isUpgraded reports whether all Machines of the sets are running successors.
func isUpgraded(w machineWatch, sets map[string]int) bool {
	bySet := map[string]int{}
	for name, set := range w.running {
		if strings.HasSuffix(name, "n") {
			bySet[set]++
		}
	}
	for set, replicas := range sets {
		if bySet[set] != replicas {
			return false
		}
	}
	return true
}

//
func TestController_UpgradesMachinesOfThreeSets(t *testing.T) {
	for name, test := range map[string]struct{ maxUnavailable, least int }{
		"one at a time, and two of each set run on":                 {1, 2},
		"several at once where the policy lets them, over all sets": {3, 1},
	} {
		if testing.Short() && test.maxUnavailable == 1 { // this case has no concurrency
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newStage(t, test.maxUnavailable)
			outdated := map[string]int{"a": 3, "b": 3, "c": 3, "single": 1}
			for set, replicas := range map[string]int{"in-place": 2, "same-digest": 2} {
				s.createMachineSet(set, replicas, map[string]v1alpha1.UpgradeStrategy{"in-place": v1alpha1.UpgradeInPlace,
					"same-digest": v1alpha1.UpgradeReplace}[set],
					map[string]string{"in-place": v1alpha1.ReasonReplacementPending, "same-digest": v1alpha1.ReasonInProgress}[set])
			}
			s.createMachine(nil, "lone", versionBefore, v1alpha1.UpgradeReplace, v1alpha1.ReasonReplacementPending)
			for set, replicas := range outdated {
				s.createMachineSet(set, replicas, v1alpha1.UpgradeReplace, v1alpha1.ReasonInProgress)
			}
			result, stop := s.simulateMachineAPI()
			defer stop()
			s.waitUntil("all run", func() bool { return len(result().minRunning) == 6 })
			s.markForReplacement(outdated)
			s.waitUntil("all are replaced", func() bool { return isUpgraded(result(), outdated) })

			w := result()
			if w.maxMissing > test.maxUnavailable {
				t.Errorf("%d Machines were missing at once", w.maxMissing)
			}
			for set, replicas := range outdated {
				if least := w.minRunning[set]; replicas > 1 && least < test.least {
					t.Errorf("%d Machines of set %s have run", least, set)
				}
			}
			if len(w.deleted) != 10 {
				t.Errorf("deleted are %v", w.deleted)
			}
			for _, kept := range []string{"lone", "in-place-0", "in-place-1", "same-digest-0", "same-digest-1"} {
				m := &machinev1beta1.Machine{}
				if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: kept},
					m); err != nil || !m.DeletionTimestamp.IsZero() {
					t.Errorf("%s is deleted (%v)", kept, err)
				}
			}
			if warnings := s.listWarnings(); len(warnings) > 0 {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}
}

// markForReplacement plays the instance controller of another version, which marks the hosts of MachineSets for
// replacement.
func (s *stage) markForReplacement(sets map[string]int) {
	s.t.Helper()
	for set, replicas := range sets {
		for i := range replicas {
			instance := &v1alpha1.WindowsInstance{}
			name := client.ObjectKey{Namespace: testenv.Namespace, Name: fmt.Sprintf("%s-%d", set, i)}
			err := s.admin.Get(s.t.Context(), name, instance)
			if err != nil {
				s.t.Fatal(err)
			}
			s.patchStatus(instance, func() {
				instance.Status.ReplacementVersion = version
			})
		}
	}
}
