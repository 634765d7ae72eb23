package test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// seedHost configures a host as a legacy operator does.
func seedHost(t *testing.T, r *testenv.Environment, name string, options testenv.LegacyOptions) *corev1.Node {
	t.Helper()
	n, err := r.SeedLegacyHost(t.Context(), r.Host(name), options)
	requireNoError(t, err)
	return n
}

// awaitCondition waits until the condition holds, checked after each change of the watched kind.
func awaitCondition(t *testing.T, r *testenv.Environment, what string, watched client.Object, condition func(context.Context,
	client.Reader) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	requireNoError(t, r.WaitFor(ctx, what, watched, condition))
}

// waitForLegacyCleanup waits until nothing of the legacy operator is left in the cluster.
func waitForLegacyCleanup(t *testing.T, r *testenv.Environment, version string) {
	t.Helper()
	for _, object := range testenv.LegacyClusterObjects(r.Namespace(), version) {
		awaitCondition(t, r, "the end of "+object.GetName(), object, func(ctx context.Context, reader client.Reader) (bool, error) {
			found, ok := object.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatalf("%T is no object", object)
			}
			err := reader.Get(ctx, client.ObjectKeyFromObject(object), found)
			return err != nil, client.IgnoreNotFound(err)
		})
	}
}

// legacyTraces contains credentials, programs and settings of the legacy operator that the node does not use. A host
// must not have them any more.
var legacyTraces = []string{
	`C:\k\bootstrap-kubeconfig`, `C:\k\wicd-kubeconfig`, `C:\k\wicd-certs`, `C:\k\cloud.conf`, `C:\k\imported-certs.pem`,
	`C:\k\windows-instance-config-daemon.exe`, `C:\k\wmcb.exe`, `C:\k\cni\config\ovnkube-client-2026-10-31-00-00-00.pem`,
	`C:\Temp\network-conf.ps1`, `C:\Temp\hns.psm1`, `C:\Temp\windows-defender-exclusion.ps1`,
	`C:\Temp\wget-ignore-cert.ps1`,
}

// checkLikeNewHost compares an adopted host with a new host: same services, programs and variables, and no traces of
// the legacy operator.
func checkLikeNewHost(t *testing.T, r *testenv.Environment, name, fresh string) {
	t.Helper()
	m, want := r.Host(name).Machine(), r.Host(fresh).Machine()
	sameNames := strings.NewReplacer(name, fresh, r.Host(name).Options.Address, r.Host(fresh).Options.Address)
	got, expected := m.Snapshot(), want.Snapshot()
	for service := range expected.Services {
		if found, _ := want.Service(service); !strings.HasPrefix(found.Description, "OpenShift managed") {
			continue
		}
		now, model := serviceOf(t, m, service), serviceOf(t, want, service)
		if sameNames.Replace(now.CommandLine) != model.CommandLine || !slices.Equal(now.Dependencies, model.Dependencies) ||
			now.Description != model.Description {
			t.Errorf("%s: %s is\n%+v, want\n%+v", name, service, now, model)
		}
	}
	for service := range got.Services {
		if _, ok := expected.Services[service]; !ok && service != "docker" {
			t.Errorf("%s: service %s is left", name, service)
		}
	}
	for _, path := range legacyTraces {
		if info, err := m.Host().Files.Stat(t.Context(), path); err == nil {
			t.Errorf("%s: %s is left: %+v", name, path, info)
		}
	}
	if _, err := m.Host().Files.Stat(t.Context(), `C:\Temp\of-somebody-else.ps1`); err != nil {
		t.Errorf("%s: what is not the older operator's has gone: %v", name, err)
	}
	variables, err := m.Host().Environment.Get(t.Context())
	requireNoError(t, err)
	for _, variable := range []string{"HTTP_PROXY", "NO_PROXY"} {
		if value, ok := variables[variable]; ok {
			t.Errorf("%s: variable %s is left: %s", name, variable, value)
		}
	}
}

// adoption in place, drained, one node at a time, without a user action, and with cleanup of
// the legacy operator's remains. One of the hosts is of version 6.
func TestAdoption_ListedLegacyHostsKeepNodes(t *testing.T) {
	const fresh = "instance-5"
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(5)})
	version := testenv.LegacyContainerd.Version()
	requireNoError(t, r.SeedLegacyCluster(t.Context(), version))
	before := map[string]*corev1.Node{
		"instance-1": seedHost(t, r, "instance-1", testenv.LegacyOptions{Kind: testenv.LegacyContainerd, Pinned: true}),
		"instance-2": seedHost(t, r, "instance-2", testenv.LegacyOptions{Kind: testenv.LegacyContainerd}),
		"instance-3": seedHost(t, r, "instance-3", testenv.LegacyOptions{Kind: testenv.LegacyDocker}),
		"instance-4": seedHost(t, r, "instance-4", testenv.LegacyOptions{Kind: testenv.LegacyBootstrapper}),
	}
	web := runLegacyPod(t, r, "instance-1")
	exporter := legacyExporterService(r)
	requireNoError(t, r.Client.Create(t.Context(), exporter))
	availability, err := r.WatchAvailability(t.Context(), testenv.AvailabilityOptions{})
	requireNoError(t, err)
	t.Cleanup(availability.Stop)
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	for name := range before {
		waitUntilUpToDate(t, r, name)
	}
	report, err := availability.Report(t.Context())
	requireNoError(t, err)

	t.Run("one at a time, and with the gate's leave", func(t *testing.T) {
		if report.MaxUnavailable > 1 || report.MaxDisruptions > 1 || len(report.Ungated) > 0 {
			t.Errorf("%+v", report)
		}
	})
	t.Run("drained first", func(t *testing.T) {
		if !waitForEvent(t, r, "DrainStarted", "instance-1") {
			t.Error("the node was not drained")
		}
		awaitCondition(t, r, "the pod to be gone", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, client.ObjectKeyFromObject(web), &corev1.Pod{})
			return err != nil, client.IgnoreNotFound(err)
		})
	})
	for name, was := range before {
		t.Run("the Node of "+name+" is the same, and is the instance's", func(t *testing.T) { checkAdopted(t, r, was) })
		t.Run(name+" is as a new host", func(t *testing.T) { checkLikeNewHost(t, r, name, fresh) })
		t.Run(name+" was not restarted", func(t *testing.T) {
			if n := r.Host(name).Machine().Journal().Count(fake.KindReboot); n > 1 { // the seed restarts the host, too
				t.Errorf("%d restarts", n)
			}
		})
	}
	// The objects by which Prometheus finds the exporters of the nodes stay, and each node serves its metrics.
	t.Run("monitoring that was on is on", func(t *testing.T) { checkMonitoring(t, r, exporter, slices.Sorted(maps.Keys(before))) })
	t.Run("what the older operator had in the cluster is gone", func(t *testing.T) {
		waitForLegacyCleanup(t, r, version)
		if !waitForEvent(t, r, "LegacyObjectDeleted", "Secret windows-instance-config-daemon") {
			t.Error("nobody was told")
		}
	})
	t.Run("the host can be removed, and nothing of a node is left", func(t *testing.T) {
		list(t, r, "instance-2", "instance-3", "instance-4", fresh)
		waitUntilDeleted(t, r, "instance-1")
		checkNothingLeft(t, r, "instance-1")
		for _, service := range []string{"kubelet", "containerd", "kube-proxy", "hybrid-overlay-node", "windows_exporter", "csi-proxy", "windows-instance-config-daemon"} {
			if found, exists := r.Host("instance-1").Machine().Service(service); exists {
				t.Errorf("service %s is left: %+v", service, found)
			}
		}
		if info, err := r.Host("instance-1").Machine().Host().Files.Stat(t.Context(), `C:\k`); err == nil {
			t.Errorf("the folder of both operators is left: %+v", info)
		}
	})
}

// legacyExporterService returns the Service by which the legacy operator had the exporters monitored.
func legacyExporterService(r *testenv.Environment) *corev1.Service {
	service := &corev1.Service{}
	service.Namespace, service.Name = r.Namespace(), "windows-exporter"
	service.Labels = map[string]string{"name": "windows-exporter"}
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.Ports = []corev1.ServicePort{{Name: "metrics", Port: 9182, TargetPort: intstr.FromInt32(9182)}}
	return service
}

// checkMonitoring checks that the objects needed for monitoring are complete.
func checkMonitoring(t *testing.T, r *testenv.Environment, exporter *corev1.Service, hosts []string) {
	t.Helper()
	namespace, service := &corev1.Namespace{}, &corev1.Service{}
	requireNoError(t, r.Client.Get(t.Context(), client.ObjectKey{Name: r.Namespace()}, namespace))
	if namespace.Labels["openshift.io/cluster-monitoring"] != "true" {
		t.Errorf("the namespace has the labels %v", namespace.Labels)
	}
	requireNoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(exporter), service))
	if service.UID != exporter.UID || service.Generation != exporter.Generation {
		t.Error("the Service of the exporters is another one")
	}
	for _, name := range hosts {
		m := r.Host(name).Machine()
		if found, exists := m.Service("windows_exporter"); !exists || found.State != host.ServiceRunning {
			t.Errorf("%s: the exporter's service is %+v", name, found)
		}
	}
}

// checkAdopted checks an adopted Node.
func checkAdopted(t *testing.T, r *testenv.Environment, was *corev1.Node) {
	t.Helper()
	now := getNode(t, r, was.Name)
	if now.UID != was.UID {
		t.Errorf("Node %s is another one", was.Name)
	}
	instance, err := r.Instance(t.Context(), was.Name)
	requireNoError(t, err)
	if now.Annotations[v1alpha1.AnnotationInstance] != instance.Name ||
		now.Annotations[v1alpha1.AnnotationVersion] != "1.0.0-lab" ||
		now.Annotations[v1alpha1.AnnotationHostKey] != instance.Status.HostKey.Key || now.Spec.Unschedulable {
		t.Errorf("Node %s has %v, unschedulable: %t", was.Name, now.Annotations, now.Spec.Unschedulable)
	}
	for name := range now.Annotations {
		if strings.HasSuffix(name, "/desired-version") || strings.HasSuffix(name, "/username") ||
			strings.HasSuffix(name, "/adopted-from") {
			t.Errorf("annotation %s is left", name)
		}
	}
	if ref := instance.Status.NodeRef; ref == nil || ref.UID != string(was.UID) || !ref.Confirmed {
		t.Errorf("the instance has Node %+v", ref)
	}
	if !waitForEvent(t, r, "NodeAdopted", was.Name) {
		t.Errorf("nobody was told that Node %s was taken over", was.Name)
	}
}

// waitUntilUpToDate waits until a host's instance is up to date with this version.
func waitUntilUpToDate(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	requireNoError(t, r.WaitForInstance(ctx, r.Host(name), "to be up to date", func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Status.SpecDigest != "" && i.Status.Version == "1.0.0-lab" &&
			slices.ContainsFunc(i.Status.Conditions, func(c metav1Condition) bool {
				return c.Type == v1alpha1.ConditionUpToDate && c.Status == "True"
			})
	}))
}

// runLegacyPod runs a pod on a node, and waits until it runs.
func runLegacyPod(t *testing.T, r *testenv.Environment, on string) *corev1.Pod {
	t.Helper()
	grace := int64(1)
	pod := &corev1.Pod{}
	pod.Namespace, pod.GenerateName = "default", "web-"
	pod.Spec = corev1.PodSpec{
		NodeName: on, TerminationGracePeriodSeconds: &grace,
		Containers:  []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
		Tolerations: []corev1.Toleration{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule}},
	}
	awaitCondition(t, r, "the namespace to have its service account", &corev1.ServiceAccount{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			err := reader.Get(ctx, keyOf("default", "default"), &corev1.ServiceAccount{})
			return err == nil, client.IgnoreNotFound(err)
		})
	requireNoError(t, r.Client.Create(t.Context(), pod))
	t.Cleanup(func() {
		_ = r.Client.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0)) // mostly deleted
	})
	awaitCondition(t, r, "the pod to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		found := &corev1.Pod{}
		err := reader.Get(ctx, client.ObjectKeyFromObject(pod), found)
		return err == nil && found.Status.Phase == corev1.PodRunning, client.IgnoreNotFound(err)
	})
	return pod
}

// the legacy operator was uninstalled, its nodes continue to run, and the cluster has no objects of the
// operator. R-156: in a namespace with a custom name.
func TestAdoption_NodesOfUninstalledOperatorAdopted(t *testing.T) {
	for name, namespace := range map[string]string{"in the usual namespace": "", "in another namespace": "winc-2026"} {
		t.Run(name, func(t *testing.T) {
			r := start(t, testenv.Options{Hosts: testenv.Hosts(2)})
			_, err := r.InstallOperator(t.Context(), namespace)
			requireNoError(t, err)
			requireNoError(t, r.CreateKey(t.Context()))
			if namespace != "" {
				requireNoError(t, r.SeedLegacyCluster(t.Context(), ""))
			}
			was := seedHost(t, r, "instance-1", testenv.LegacyOptions{Kind: testenv.LegacyContainerd})
			run(t, r)
			list(t, r)
			waitUntilReady(t, r)
			waitUntilUpToDate(t, r, "instance-1")
			checkAdopted(t, r, was)
			checkLikeNewHost(t, r, "instance-1", "instance-2")
			waitForLegacyCleanup(t, r, testenv.LegacyContainerd.Version())
		})
	}
}

// an entry is removed before the host has acquired a disruption slot.
func TestAdoption_LegacyHostRemovedBeforeUpgrade(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(3)})
	requireNoError(t, r.SeedLegacyCluster(t.Context(), ""))
	kinds := map[string]testenv.LegacyKind{"instance-1": testenv.LegacyContainerd, "instance-2": testenv.LegacyDocker,
		"instance-3": testenv.LegacyBootstrapper}
	for name, kind := range kinds {
		seedHost(t, r, name, testenv.LegacyOptions{Kind: kind})
	}
	pauseDisruptions(t, r, true)
	run(t, r)
	list(t, r)
	for name := range kinds {
		waitForReason(t, r, name, v1alpha1.ReasonDisruptionsPaused)
		if !waitForEvent(t, r, "NodeAdopted", name) {
			t.Errorf("Node %s was not taken over", name)
		}
	}
	requireNoError(t, r.DeleteInstances(t.Context()))
	for name := range kinds {
		waitUntilDeleted(t, r, name)
		checkNothingLeft(t, r, name)
		m := r.Host(name).Machine()
		for _, service := range []string{"kubelet", "containerd", "kube-proxy", "hybrid-overlay-node", "windows_exporter",
			"csi-proxy", "windows-instance-config-daemon"} {
			if found, exists := m.Service(service); exists {
				t.Errorf("%s: service %s is left: %+v", name, service, found)
			}
		}
		for _, path := range slices.Concat(legacyTraces, []string{`C:\k`, `C:\var\lib\kubelet`}) {
			if info, err := m.Host().Files.Stat(t.Context(), path); err == nil {
				t.Errorf("%s: %s is left: %+v", name, path, info)
			}
		}
	}
	waitForLegacyCleanup(t, r, testenv.LegacyContainerd.Version())
	t.Run("and can become nodes again", func(t *testing.T) {
		list(t, r)
		waitUntilReady(t, r)
	})
}

func TestAdoption_HostKeyOtherThanPinnedStopsHost(t *testing.T) {
	other := "AAAAC3NzaC1lZDI1NTE5AAAAIGVpZ2h0LWVpZ2h0LWVpZ2h0LWVpZ2h0LWVpZ2h0LWFi"
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(4)})
	requireNoError(t, r.SeedLegacyCluster(t.Context(), ""))
	seeded := map[string]*corev1.Node{}
	for _, name := range []string{"instance-1", "instance-2", "instance-3"} {
		seeded[name] = seedHost(t, r, name, testenv.LegacyOptions{Kind: testenv.LegacyContainerd})
	}
	for _, name := range []string{"instance-1", "instance-2"} { // by address, and by name
		setAnnotation(t, r, seeded[name], v1alpha1.AnnotationHostKey, other)
		setAnnotation(t, r, seeded[name], v1alpha1.AnnotationHostKeyType, "ssh-ed25519")
	}
	requireNoError(t, r.RecordLegacyHostKeys(t.Context(), map[string]string{r.Host("instance-3").Options.Address: other}))
	before := map[string]fake.Snapshot{}
	for name := range seeded {
		before[name] = r.Host(name).Machine().Snapshot()
	}
	run(t, r)
	list(t, r)
	waitUntilReady(t, r, "instance-4")
	for name, was := range seeded {
		t.Run(name+" is stopped before anything is sent to it, and its node goes on", func(t *testing.T) {
			instance := waitForReason(t, r, name, "HostKeyChanged")
			if instance.Status.HostKey == nil || instance.Status.HostKey.Key != other {
				t.Errorf("pinned is %+v", instance.Status.HostKey)
			}
			now := getNode(t, r, name)
			if now.UID != was.UID || now.Annotations[v1alpha1.AnnotationInstance] != "" ||
				now.Spec.Unschedulable || !isNodeReady(now) {
				t.Errorf("the Node has %v", now.Annotations)
			}
			journal := r.Host(name).Machine().Journal()
			if n := journal.Count(fake.KindExec) + journal.Count(fake.KindSFTP); n != 0 {
				t.Errorf("%d execs and transfers", n)
			}
		})
	}
	t.Run("what hosts need stays in the cluster", func(t *testing.T) {
		requireNoError(t, r.Client.Get(t.Context(), keyOf("", "windows-instance-config-daemon"), &rbacv1.ClusterRoleBinding{}))
		requireNoError(t, r.Client.Get(t.Context(), keyOf(r.Namespace(), "windows-ssh-host-keys"), &corev1.ConfigMap{}))
	})
	t.Run("a key that an administrator accepts goes on", func(t *testing.T) {
		key, err := r.Host("instance-1").HostKey()
		requireNoError(t, err)
		instance, err := r.Instance(t.Context(), "instance-1")
		requireNoError(t, err)
		setAnnotation(t, r, instance, v1alpha1.AnnotationAcceptHostKey, ssh.FingerprintSHA256(key))
		waitUntilUpToDate(t, r, "instance-1")
		checkAdopted(t, r, seeded["instance-1"])
	})
}

func TestAdoption_HostClaimingLegacyNodeNameRejected(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{Name: "instance-1"}}})
	requireNoError(t, r.SeedLegacyCluster(t.Context(), ""))
	was := seedHost(t, r, "instance-1", testenv.LegacyOptions{Kind: testenv.LegacyContainerd, NodeName: "winhost-9"})
	impostor, err := r.AddHost(t.Context(), testenv.HostOptions{Name: "WINHOST-9", Address: testenv.Address(9),
		Features: map[string]host.FeatureState{"Containers": host.FeatureEnabled}})
	requireNoError(t, err)
	services := impostor.Machine().Snapshot().Services
	run(t, r)
	list(t, r, "WINHOST-9")
	instance := waitForReason(t, r, "WINHOST-9", v1alpha1.ReasonNameConflict)
	if instance.Status.NodeRef != nil {
		t.Errorf("it has Node %+v", instance.Status.NodeRef)
	}
	now := getNode(t, r, "winhost-9")
	if now.UID != was.UID || now.Annotations[v1alpha1.AnnotationInstance] != "" || !isNodeReady(now) ||
		now.Spec.Unschedulable {
		t.Errorf("the Node has %v", now.Annotations)
	}
	if after := impostor.Machine().Snapshot().Services; len(after) != len(services) {
		t.Errorf("services of the host: %v, before %v", after, services)
	}
}
