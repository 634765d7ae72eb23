package standin

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/standin/kubelet"
)

//
func TestKubelet_RegistersNode(t *testing.T) {
	h := newClusterHost(t, "win-registers", Options{})
	h.start("kubelet")
	node := h.awaitNode("the node registers", func(n *corev1.Node) bool { return len(n.Status.Conditions) > 0 })

	for label, want := range map[string]string{
		"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "win-registers",
		"node.kubernetes.io/windows-build": "10.0.20348", "beta.kubernetes.io/os": "windows",
		"node.openshift.io/os_id": "Windows",
	} {
		if node.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, node.Labels[label], want)
		}
	}
	taints := map[string]bool{}
	for _, taint := range node.Spec.Taints {
		taints[taint.ToString()] = true
	}
	if !taints["os=Windows:NoSchedule"] || !taints["startup-taint.cluster-autoscaler.kubernetes.io/windows-not-ready:NoSchedule"] {
		t.Errorf("taints %v", node.Spec.Taints)
	}
	if info := node.Status.NodeInfo; info.KernelVersion != "10.0.20348.681" || info.KubeletVersion != "v1.36.3" ||
		info.OperatingSystem != "windows" {
		t.Errorf("node info %+v", info)
	}
	if status, message := nodeReady(node); status != corev1.ConditionFalse ||
		!strings.Contains(message, "container runtime is down") {
		t.Errorf("without a runtime the node is ready=%s: %s", status, message)
	}

	h.startContainerd()
	node = h.awaitNode("the runtime is seen", func(n *corev1.Node) bool {
		_, message := nodeReady(n)
		return !strings.Contains(message, "container runtime is down")
	})
	if got := node.Status.NodeInfo.ContainerRuntimeVersion; got != "containerd://2.4.2" {
		t.Errorf("runtime version %q", got)
	}
	if status, message := nodeReady(node); status != corev1.ConditionFalse ||
		!strings.Contains(message, "cni plugin not initialized") {
		t.Errorf("without a pod network the node is ready=%s: %s", status, message)
	}
	h.pollCondition("the lease", func(ctx context.Context) (bool, error) {
		lease, err := h.admin.CoordinationV1().Leases("kube-node-lease").Get(ctx, h.node, metav1.GetOptions{})
		return err == nil && *lease.Spec.HolderIdentity == h.node && len(lease.OwnerReferences) == 1, nil
	})
	h.startReadyNode("10.132.2.0/23")
	if h.networkSubnet(baseNetwork) == "" {
		t.Error("the base network is not there")
	}
	h.awaitNode("the gateway's address", func(n *corev1.Node) bool {
		return n.Annotations[gatewayAnnotation] == "00:15:0a:09:00:05"
	})

	t.Run("another subnet makes the network anew", func(t *testing.T) {
		h.annotateSubnet("10.132.4.0/23")
		h.awaitMachine("the HNS network", func() bool { return h.networkSubnet(overlayNetwork) == "10.132.4.0/23" })
	})
	t.Run("a restarted kubelet takes its node over", func(t *testing.T) {
		h.stop("kubelet")
		h.start("kubelet")
		h.pollCondition("it registers again", func(context.Context) (bool, error) {
			return strings.Count(h.read(`C:\var\log\kubelet\kubelet.log`), "Successfully registered node") == 2, nil
		})
	})
}

// The node controller sets this status if the heartbeat of a kubelet is overdue, for instance because the clock
// of the host went back.
func TestKubelet_CorrectsUnknownReadyStatus(t *testing.T) {
	h := newClusterHost(t, "win-lost", Options{})
	h.start("kubelet")
	reports := func(n *corev1.Node) bool { status, _ := nodeReady(n); return status == corev1.ConditionFalse }
	h.awaitNode("the node reports", reports)
	lost := `{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"},{"type":"Checked","status":"True"}]}}`
	if _, err := h.admin.CoreV1().Nodes().PatchStatus(t.Context(), h.node, []byte(lost)); err != nil {
		t.Fatal(err)
	}
	h.awaitNode("the node reports again, and keeps the condition of others", func(n *corev1.Node) bool {
		checked := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "Checked" })
		return reports(n) && checked
	})
}

func TestKubelet_EndsWithReason(t *testing.T) {
	h := newClusterHost(t, "win-refused", Options{})
	refused := func(want string, args ...string) {
		t.Helper()
		code, output := h.run(append([]string{`C:\k\kubelet.exe`}, args...)...)
		if code == 0 || !strings.Contains(output, want) {
			t.Errorf("exit code %d, output %s; want %s", code, output, want)
		}
	}
	config, kubeconfig := `--config=C:\k\kubelet.conf`, `--kubeconfig=C:\k\kubeconfig`
	refused("unknown flag: --register-schedulable", "--register-schedulable=false")
	refused("unknown 'kubernetes.io' or 'k8s.io' labels", config, kubeconfig,
		"--node-labels=node-role.kubernetes.io/worker=")
	refused("failed to load kubelet config file", `--config=C:\k\nothing.conf`, kubeconfig)
	refused("invalid kubeconfig", config)
	refused("unable to access path", config, kubeconfig, `--image-credential-provider-config=C:\k\nothing.yaml`)
	h.write(`C:\k\wrong.conf`, kubeletConfigFile+"noSuchField: 1\n")
	refused("noSuchField", `--config=C:\k\wrong.conf`, kubeconfig)
	h.write(`C:\k\wrong.conf`, kubeletConfigFile+"imageGCHighThresholdPercent: 70\n")
	refused("imageGCLowThresholdPercent (--image-gc-low-threshold) 80 must be less than", `--config=C:\k\wrong.conf`, kubeconfig)
	h.write(`C:\k\wrong.conf`, "apiVersion: v1\nkind: ConfigMap\n")
	refused(`no kind "ConfigMap" is registered`, `--config=C:\k\wrong.conf`, kubeconfig)
	if err := h.Drive().Remove(`C:\k\kubelet-ca.crt`); err != nil {
		t.Fatal(err)
	}
	refused("unable to load client CA file", config, kubeconfig)
}

// The API server refuses a kubelet that registers with another name than the name in its certificate, and the
// kubelet logs the refusal.
func TestKubelet_RegistersOwnNodeOnly(t *testing.T) {
	h := newClusterHost(t, "win-honest", Options{})
	h.configureService("kubelet", `C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\kubelet\kubelet.log`, `C:\k\kubelet.exe`,
		`--config=C:\k\kubelet.conf`,
		`--kubeconfig=C:\k\kubeconfig`, "--windows-service", "--hostname-override=master-0")
	h.start("kubelet")
	h.pollCondition("the refusal", func(context.Context) (bool, error) {
		log := h.read(`C:\var\log\kubelet\kubelet.log`)
		return strings.Contains(log, "Unable to register node") && strings.Contains(log, "forbidden"), nil
	})
}

func (h *clusterHost) createPod(namespace, name string, change func(*corev1.Pod)) *corev1.Pod {
	h.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: h.node, Containers: []corev1.Container{{Name: "web", Image: "example.org/web"}},
			TerminationGracePeriodSeconds: ptr.To[int64](30), AutomountServiceAccountToken: ptr.To(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if change != nil {
		change(pod)
	}
	var created *corev1.Pod
	h.pollCondition("make a pod", func(ctx context.Context) (bool, error) {
		var err error
		created, err = h.admin.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) { // until the namespace has its service account
			return false, nil
		}
		return err == nil, err
	})
	return created
}

func (h *clusterHost) awaitPod(what, namespace, name string, condition func(*corev1.Pod) bool) *corev1.Pod {
	h.t.Helper()
	var pod *corev1.Pod
	h.pollCondition(what, func(ctx context.Context) (bool, error) {
		var err error
		pod, err = h.admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && condition(pod), nil
	})
	return pod
}

func isRunning(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func TestKubelet_RunsSimulatedPods(t *testing.T) {
	h := newClusterHost(t, "win-pods", Options{PodStopTime: time.Millisecond})
	namespace := clustertest.Namespace(t, h.cluster)
	early := h.createPod(namespace, "early", nil)
	h.startReadyNode("10.132.6.0/23")
	early = h.awaitPod("a pod that waited for the network runs", namespace, early.Name, isRunning)

	t.Run("a running pod has an address of the node's subnet, an endpoint and a shim", func(t *testing.T) {
		address, err := netip.ParseAddr(early.Status.PodIP)
		if err != nil || !netip.MustParsePrefix("10.132.6.0/23").Contains(address) {
			t.Errorf("address %q", early.Status.PodIP)
		}
		if shim := h.findProcess("containerd-shim-runhcs-v1.exe"); shim == nil {
			t.Error("no shim runs")
		}
	})
	t.Run("a pod for Linux is refused", func(t *testing.T) {
		h.createPod(namespace, "linux", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} })
		h.awaitPod("it fails", namespace, "linux", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	})
	t.Run("pods run on while containerd and the kubelet are restarted", func(t *testing.T) {
		shim := h.findProcess("containerd-shim-runhcs-v1.exe").PID
		h.stop("kubelet")
		h.stop("containerd")
		h.start("containerd")
		h.start("kubelet")
		h.createPod(namespace, "later", nil)
		h.awaitPod("a later pod runs", namespace, "later", isRunning)
		again := h.awaitPod("the pod", namespace, "early", isRunning)
		if again.Status.ContainerStatuses[0].RestartCount != 0 || h.findProcess("containerd-shim-runhcs-v1.exe").PID != shim {
			t.Error("the pod was restarted")
		}
	})
	t.Run("a deleted pod goes when its containers have ended", func(t *testing.T) {
		for _, name := range []string{"early", "later", "linux"} {
			if err := h.admin.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		h.pollCondition("the pods go", func(ctx context.Context) (bool, error) {
			list, err := h.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, err
		})
		h.awaitMachine("nothing is left of them", func() bool {
			endpoints, err := h.Host().Networks.Endpoints(t.Context())
			return err == nil && len(endpoints) == 0 && h.findProcess("containerd-shim-runhcs-v1.exe") == nil
		})
	})
	t.Run("a pod goes as soon on a host whose clock is ten minutes slow", func(t *testing.T) {
		h.SetClockOffset(-10 * time.Minute)
		defer h.SetClockOffset(0)
		h.createPod(namespace, "unhurried", nil)
		h.awaitPod("it runs", namespace, "unhurried", isRunning)
		if err := h.admin.CoreV1().Pods(namespace).Delete(t.Context(), "unhurried", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.pollCondition("it goes", func(ctx context.Context) (bool, error) {
			_, err := h.admin.CoreV1().Pods(namespace).Get(ctx, "unhurried", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	})
	t.Run("a pod that does not end when asked has its whole grace period", func(t *testing.T) {
		h.createPod(namespace, "stubborn", func(p *corev1.Pod) {
			p.Annotations = map[string]string{kubelet.StopSecondsAnnotation: "600"}
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3)
		})
		h.awaitPod("it runs", namespace, "stubborn", isRunning)
		start := time.Now()
		if err := h.admin.CoreV1().Pods(namespace).Delete(t.Context(), "stubborn", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		h.pollCondition("it goes", func(ctx context.Context) (bool, error) {
			_, err := h.admin.CoreV1().Pods(namespace).Get(ctx, "stubborn", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		// The API server counts in full seconds.
		if elapsed := time.Since(start); elapsed < 1900*time.Millisecond {
			t.Errorf("it took %v", elapsed)
		}
	})
}
