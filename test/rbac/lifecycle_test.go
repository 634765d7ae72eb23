package rbac

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const (
	machineSet   = "windows"
	workload     = "workload"
	firstVersion = "1.0.0-lab"
	nextVersion  = "1.1.0-lab"
)

// exerciseOperator makes the operator perform all its operations: join and removal, Machines and hosts, blocked
// evictions, a restart, a new version, another key, and cleanup after a legacy operator.
func (l lab) exerciseOperator() {
	l.Helper()
	ctx := l.Context()
	l.createNamespace("openshift-cluster-api") // The user data is copied there as well.
	l.requireNoError(l.SeedLegacyCluster(ctx, ""))
	older := metav1.ObjectMeta{Namespace: l.installation.namespace, Name: "windows-instance-config-daemon"}
	l.requireNoError(client.IgnoreAlreadyExists(l.Client.Create(ctx, &rbacv1.Role{ObjectMeta: older})))

	metrics := freeAddress(l)
	o := l.startOperator(firstVersion, metrics)
	l.requireNoError(l.CreateMachineSet(ctx, machineSet, 1, testenv.MachineSetOptions{}))
	l.requireNoError(l.ListHosts(ctx))
	l.waitUntilAllReady()
	l.scrapeMetrics(metrics)
	l.restartHost("instance-2")
	l.requireNoError(o.Stop())

	o = l.startOperator(nextVersion, "0")
	l.waitForNodes("to be of the new version", 3, func(n *corev1.Node) bool {
		return n.Annotations[v1alpha1.AnnotationVersion] == nextVersion
	})
	l.waitUntilAllReady()
	l.requireNoError(l.RotateKey(ctx, false))
	for _, h := range l.Hosts() {
		l.requireNoError(h.AuthorizeKey(h.Options.Username, l.PublicKey()))
	}
	l.waitForNodes("to have the new key", 3, func(n *corev1.Node) bool {
		return n.Annotations[v1alpha1.AnnotationPubKeyHash] == l.KeyHash()
	})
	l.waitUntilAllReady()

	l.deployWorkload("instance-1")
	l.requireNoError(l.ListHosts(ctx, "instance-2"))
	l.waitForDrainRefusal("instance-1")
	l.requireNoError(l.Client.Delete(ctx,
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "web"}}))
	l.inTime(func(ctx context.Context) error { return l.WaitGone(ctx, "instance-1") })
	// The Machines outlive the MachineSet until they are deleted.
	l.requireNoError(l.Client.Delete(ctx, &machinev1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace,
		Name: machineSet}}))
	l.requireNoError(l.DeleteInstances(ctx))
	l.inTime(func(ctx context.Context) error { return l.WaitGone(ctx, "instance-2") })
	l.waitForNodes("to be gone", 0, nil)
	l.waitForLegacyCleanup()
	l.requireNoError(o.Stop())
}

func (l lab) waitUntilAllReady() {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		_, err := l.WaitMachinesReady(ctx, machineSet, 1)
		return errors.Join(err, l.WaitReady(ctx))
	})
}

// waitForNodes waits until the number of Windows nodes is count and each meets the condition.
func (l lab) waitForNodes(what string, count int, isDesired func(*corev1.Node) bool) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "Windows nodes "+what, &corev1.Node{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var nodes corev1.NodeList
				err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"})
				other := func(n corev1.Node) bool { return !isDesired(&n) }
				return len(nodes.Items) == count && !slices.ContainsFunc(nodes.Items, other), err
			})
	})
}

// nodeOf returns the name of a host's node.
func (l lab) nodeOf(host string) string {
	l.Helper()
	instance, err := l.Instance(l.Context(), host)
	l.requireNoError(err)
	if instance == nil || instance.Status.NodeRef == nil {
		l.Fatalf("host %s is no node", host)
	}
	return instance.Status.NodeRef.Name
}

// deployWorkload runs two pods on the node of a host: a pod of a Deployment with a budget that prevents eviction, and
// a pod of a DaemonSet.
func (l lab) deployWorkload(host string) {
	l.Helper()
	node := l.nodeOf(host)
	l.createNamespace(workload)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := func(app string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: node},
				Tolerations: []corev1.Toleration{{Key: v1alpha1.TaintWindows,
					Operator: corev1.TolerationOpExists}},
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				Containers:                    []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
			}}
	}
	metaInNamespace := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: workload, Name: name} }
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metaInNamespace("web"), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: selector, Template: template("web"),
		}},
		&appsv1.DaemonSet{ObjectMeta: metaInNamespace("daemon"), Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "daemon"}}, Template: template("daemon"),
		}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metaInNamespace("web"), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: selector,
		}},
	} {
		l.requireNoError(l.Client.Create(l.Context(), object))
		l.Cleanup(func() { _ = l.Client.Delete(context.Background(), object) }) // the budget no longer exists then
	}
	l.waitUntil("the workload runs", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := l.Client.List(ctx, &pods, client.InNamespace(workload))
		waits := func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning }
		return len(pods.Items) == 2 && !slices.ContainsFunc(pods.Items, waits), err
	})
}

// restartHost requests a restart of a host, and waits until the operator has performed it.
func (l lab) restartHost(name string) {
	l.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.nodeOf(name)}}
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationRebootRequired+`":""}}}`))
	l.requireNoError(l.Client.Patch(l.Context(), node, patch))
	l.waitForNodes("to want no restart", 3, func(n *corev1.Node) bool {
		_, rebootRequired := n.Annotations[v1alpha1.AnnotationRebootRequired]
		return !rebootRequired
	})
	l.waitUntilAllReady()
}

// waitForDrainRefusal waits until the status of an instance names the budget that prevents an eviction.
func (l lab) waitForDrainRefusal(name string) {
	l.Helper()
	l.inTime(func(ctx context.Context) error {
		return l.WaitForInstance(ctx, l.Host(name), "to name the budget that keeps a pod",
			func(i *v1alpha1.WindowsInstance) bool {
				return i != nil && slices.ContainsFunc(i.Status.Conditions, func(c metav1.Condition) bool {
					return strings.Contains(c.Message, "PodDisruptionBudgets allow no disruption now: "+workload+"/web")
				})
			})
	})
}

// waitForLegacyCleanup waits until nothing of the legacy operator is left.
func (l lab) waitForLegacyCleanup() {
	l.Helper()
	l.waitUntil("what an older operator has left is gone", func(ctx context.Context) (bool, error) {
		for _, object := range testenv.LegacyClusterObjects(l.installation.namespace, testenv.LegacyContainerd.Version()) {
			err := l.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			if client.IgnoreNotFound(err) != nil || err == nil {
				return false, client.IgnoreNotFound(err)
			}
		}
		return true, nil
	})
}

// scrapeMetrics reads the operator's metrics like Prometheus: over HTTPS, with the token of a ServiceAccount with the
// permission.
func (l lab) scrapeMetrics(address string) {
	l.Helper()
	const reader = "metrics-reader"
	meta := metav1.ObjectMeta{Name: reader}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: reader}}
	for _, object := range []client.Object{
		account,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"},
			Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: reader},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: reader}}},
	} {
		l.requireNoError(client.IgnoreAlreadyExists(l.Client.Create(l.Context(), object)))
	}
	config, err := l.Cluster().ServiceAccountConfig(l.Context(), account.Namespace, reader)
	l.requireNoError(err)
	l.waitUntil("metrics are served to who may read them", func(ctx context.Context) (bool, error) {
		status, body, err := get(ctx, "https://"+address+"/metrics", config)
		return err == nil && status == http.StatusOK && strings.Contains(body, "wmco_nodes_outdated") &&
			strings.Contains(body, "wmco_instance_info{"), nil
	})
	for token, want := range map[string]int{"": http.StatusUnauthorized, "made-up": http.StatusInternalServerError} { // responses of the filter
		unauthenticated := &rest.Config{BearerToken: token}
		if status, _, err := get(l.Context(), "https://"+address+"/metrics", unauthenticated); err != nil || status != want {
			l.Errorf("a client with the token %q reads metrics with status %d, error %v", token, status, err)
		}
	}
	operators, err := l.Cluster().ServiceAccountConfig(l.Context(), l.installation.namespace, "default")
	l.requireNoError(err)
	if status, _, err := get(l.Context(), "https://"+address+"/metrics", operators); err != nil ||
		status != http.StatusForbidden {
		l.Errorf("a ServiceAccount without the right reads metrics with status %d, error %v", status, err)
	}
}

// get reads a page of the operator, which uses a self-signed certificate in the lab.
func get(ctx context.Context, url string, as *rest.Config) (int, string, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // self-signed
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if as.BearerToken != "" {
		request.Header.Set("Authorization", "Bearer "+as.BearerToken)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// freeAddress returns an unused address. It avoids 127.0.0.1, where all other programs allocate ports.
func freeAddress(l lab) string {
	l.Helper()
	listener, err := (&net.ListenConfig{}).Listen(l.Context(), "tcp", "127.0.77.1:0")
	l.requireNoError(err)
	defer listener.Close()
	return listener.Addr().String()
}
