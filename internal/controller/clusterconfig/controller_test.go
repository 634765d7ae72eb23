package clusterconfig

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	labcluster "github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(labcluster.Options{Profile: labcluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }

// running is a Source in a manager, with a real API server.
type running struct {
	*Source
	admin     client.Client
	namespace string
	// reads counts the reads of the cluster.
	reads *atomic.Int64
}

// countingReader counts reads of the ClusterVersion, which each read of the cluster requests once.
type countingReader struct {
	client.Reader
	reads *atomic.Int64
}

func (r countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if _, ok := object.(*configv1.ClusterVersion); ok {
		defer r.reads.Add(1)
	}
	return r.Reader.Get(ctx, key, object, options...)
}

// start runs a Source of the current release line in a new namespace with the operator's Deployment and the objects
// that OLM creates.
func start(t *testing.T) *running {
	t.Helper()
	return startLine(t, support.CurrentLine())
}

// startLine is start for an operator of another release line.
func startLine(t *testing.T, line support.ReleaseLine) *running {
	t.Helper()
	return startAt(t, line, clock.RealClock{})
}

// startAt is startLine with a clock for absences.
func startAt(t *testing.T, line support.ReleaseLine, absent clock.PassiveClock) *running {
	t.Helper()
	c := lab.Cluster(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, cluster.AddToScheme,
		operatorcondition.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &running{namespace: clustertest.Namespace(t, c), reads: &atomic.Int64{}}
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{r.namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.admin, err = client.New(c.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	r.createObject(t, &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: olmName}})
	r.createObject(t, newDeployment(r.namespace))

	r.Source = NewSource(countingReader{mgr.GetAPIReader(), r.reads}, r.namespace)
	r.clock = absent
	r.Report = NewReporter(mgr.GetAPIReader(), mgr.GetEventRecorder(deploymentName),
		operatorcondition.NewWriter(mgr.GetClient(), mgr.GetAPIReader(), r.namespace, olmName), r.namespace, line)
	serves := func(kind schema.GroupVersionKind) bool {
		_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	}
	if err := r.SetupWithManager(mgr, serves); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	r.waitUntil(t, "the cluster is read", func(context.Context) (bool, error) {
		_, err := r.Current()
		return err == nil, nil
	})
	return r
}

func newDeployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"name": deploymentName}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deploymentName},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "none"}}},
			},
		},
	}
}

func (r *running) createObject(t *testing.T, object client.Object) {
	t.Helper()
	if err := r.admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// createForTest creates an object outside the namespace of the test and deletes it after the test.
func (r *running) createForTest(t *testing.T, object client.Object) {
	t.Helper()
	r.createObject(t, object)
	t.Cleanup(func() {
		if err := r.admin.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

func (r *running) waitUntil(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 3*time.Minute, true, condition); err != nil {
		_, current := r.Current()
		t.Fatalf("%s: %v; the cluster was read %d times, with error %v", what, err, r.reads.Load(), current)
	}
}

// waitForReads waits until running reads have ended, and returns the number of reads.
func (r *running) waitForReads(t *testing.T) int64 {
	t.Helper()
	last, since := r.reads.Load(), time.Now()
	r.waitUntil(t, "the reads come to an end", func(context.Context) (bool, error) {
		if now := r.reads.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond, nil
	})
	return last
}

func (r *running) renderedConfigName(t *testing.T) string {
	t.Helper()
	pool := &machineconfigv1.MachineConfigPool{}
	if err := r.admin.Get(t.Context(), client.ObjectKey{Name: "worker"}, pool); err != nil {
		t.Fatal(err)
	}
	return pool.Spec.Configuration.Name
}

// R-114, D-3, L-01, L-02, L-03
func TestController_ChangeOfReadObjectTriggersRead(t *testing.T) {
	r := start(t)
	named := func(o client.Object, name string) client.Object { o.SetName(name); return o }
	mirrors := []client.Object{named(&configv1.ImageDigestMirrorSet{}, "change-"+r.namespace),
		named(&configv1.ImageTagMirrorSet{}, "change-"+r.namespace)}
	for _, set := range mirrors {
		r.createForTest(t, set)
	}
	r.createObject(t, r.servingSecret(t))
	for name, object := range map[string]client.Object{
		"the Infrastructure":                  named(&configv1.Infrastructure{}, "cluster"),
		"the ClusterVersion":                  named(&configv1.ClusterVersion{}, "version"),
		"the Network's configuration":         named(&configv1.Network{}, "cluster"),
		"the Network operator":                named(&operatorv1.Network{}, "cluster"),
		"the pool of workers":                 named(&machineconfigv1.MachineConfigPool{}, "worker"),
		"the workers' rendered configuration": named(&machineconfigv1.MachineConfig{}, r.renderedConfigName(t)),
		"the ControllerConfig":                named(&machineconfigv1.ControllerConfig{}, "machine-config-controller"),
		"the API server's certificate authority": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
			Name: "kube-root-ca.crt"}},
		"the proxy":               named(&configv1.Proxy{}, "cluster"),
		"the image configuration": named(&configv1.Image{}, "cluster"),
		"mirrors for digests":     mirrors[0],
		"mirrors for tags":        mirrors[1],
		"the pull secret": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config",
			Name: "pull-secret"}},
		"the exporters' certificate": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
			Name: "windows-machine-config-operator-tls"}},
		"the authorities of the exporters' clients": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system",
			Name: "extension-apiserver-authentication"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.waitForReads(t)
			change := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"test":"changed"}}}`))
			if err := r.admin.Patch(t.Context(), object, change); err != nil {
				t.Fatal(err)
			}
			r.waitUntil(t, "it is read again", func(context.Context) (bool, error) { return r.reads.Load() > before, nil })
		})
	}
	for name, object := range map[string]client.Object{
		"another ConfigMap of the namespace": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
			Name: "another"}},
		"another Secret of the namespace": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
			Name: "another"}},
		"a pull secret of another namespace": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace,
			Name: "pull-secret"}},
		"another Secret beside that": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config",
			Name: "another-" + r.namespace}},
		"another Image configuration": named(&configv1.Image{}, "another-"+r.namespace),
	} {
		t.Run(name+" is nothing to it", func(t *testing.T) {
			before := r.waitForReads(t)
			r.createForTest(t, object)
			if after := r.waitForReads(t); after != before {
				t.Errorf("read %d times", after-before)
			}
		})
	}
}

// hasOLMCondition returns a condition: the OperatorCondition has this status of ClusterSupported and contains the
// words.
func (r *running) hasOLMCondition(want metav1.ConditionStatus, words ...string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		object := &operatorsv2.OperatorCondition{}
		err := r.admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: olmName}, object)
		found := meta.FindStatusCondition(object.Spec.Conditions, operatorcondition.ClusterSupported)
		return found != nil && found.Status == want && hasAll(found.Message, words), err
	}
}

// hasDeploymentEvent returns a condition: the operator's Deployment has such an event with the words.
func (r *running) hasDeploymentEvent(eventType, reason string, words ...string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		own := &appsv1.Deployment{}
		if err := r.admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: deploymentName}, own); err != nil {
			return false, err
		}
		var events eventsv1.EventList
		if err := r.admin.List(ctx, &events, client.InNamespace(r.namespace)); err != nil {
			return false, err
		}
		for _, e := range events.Items {
			if e.Type == eventType && e.Reason == reason && e.Regarding.Kind == "Deployment" && e.Regarding.UID == own.UID &&
				hasAll(e.Note, words) {
				return true, nil
			}
		}
		return false, nil
	}
}

func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// the cluster of the lab is one patch version below the minimum of a release, and is upgraded.
func TestController_LowPatchVersionReportedUntilUpgrade(t *testing.T) {
	line := support.ReleaseLine{Operator: 12, Minors: []support.Minor{{OpenShift: "5.0", Kubernetes: "1.36", MinPatch: 4}}}
	r := startLine(t, line)
	setVersion := func(version string) {
		change := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"history":[{"state":"Completed","version":"`+version+`",
"image":"none","startedTime":"2026-07-01T08:00:00Z","completionTime":"2026-07-01T08:41:00Z","verified":false}]}}`))
		if err := r.admin.Status().Patch(context.Background(),
			&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}, change); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { setVersion("5.0.3") })

	both := []string{"OpenShift 5.0.3", "OpenShift 5.0.4"}
	r.waitUntil(t, "OLM knows which version is needed", r.hasOLMCondition(metav1.ConditionFalse, both...))
	r.waitUntil(t, "a warning at the Deployment says the same", r.hasDeploymentEvent(corev1.EventTypeWarning,
		"ClusterVersionUnsupported", both...))
	setVersion("5.0.4")
	r.waitUntil(t, "OLM knows that the cluster is supported", r.hasOLMCondition(metav1.ConditionTrue))
	r.waitUntil(t, "and so is the Deployment", r.hasDeploymentEvent(corev1.EventTypeNormal, operatorcondition.ClusterSupported))
}

//
func TestController_ReportsUnsupportedNetwork(t *testing.T) {
	r := start(t)
	setNetwork := func(plugin string) {
		network := &configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		change := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"networkType":"`+plugin+`"}}`))
		if err := r.admin.Patch(context.Background(), network, change); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { setNetwork("OVNKubernetes") })

	r.waitUntil(t, "OLM knows that the cluster is supported", r.hasOLMCondition(metav1.ConditionTrue))
	setNetwork("OpenShiftSDN")
	r.waitUntil(t, "OLM knows that it is not", r.hasOLMCondition(metav1.ConditionFalse))
	r.waitUntil(t, "a warning is at the Deployment", r.hasDeploymentEvent(corev1.EventTypeWarning, "NetworkUnsupported"))
	setNetwork("OVNKubernetes")
	r.waitUntil(t, "OLM knows that it is again", r.hasOLMCondition(metav1.ConditionTrue))
	r.waitUntil(t, "and so is the Deployment", r.hasDeploymentEvent(corev1.EventTypeNormal, operatorcondition.ClusterSupported))
}
