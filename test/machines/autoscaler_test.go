package machines

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/machineset"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// autoscaler scales up MachineSets for pending pods, by the rules of the cluster autoscaler's FAQ and of its
// provider for the Machine API (kubernetes/autoscaler, cluster-autoscaler/FAQ.md and cloudprovider/clusterapi).
// Nodes fit any number of pods. Each scan is a call; the autoscaler's own interval is ten seconds.
type autoscaler struct{ lab }

// Annotations of a MachineSet that the autoscaler reads.
const (
	annotationMax            = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size"
	annotationCapacityLabels = "capacity.cluster-autoscaler.kubernetes.io/labels"
	annotationCapacityTaints = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// scaleUp adds at most one Machine to a MachineSet, and returns the MachineSet's replicas.
func (a autoscaler) scaleUp(name string) int32 {
	a.Helper()
	set := &machinev1.MachineSet{}
	a.requireNoError(a.Client.Get(a.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: name}, set))
	most, err := strconv.Atoi(set.Annotations[annotationMax])
	a.requireNoError(err)
	replicas := *set.Spec.Replicas
	ready := a.readyNodes(name)
	template := a.templateNode(set)
	upcoming := int(replicas) > len(ready)
	for _, pod := range a.pendingPods() {
		fits := func(node *corev1.Node) bool { return canSchedule(&pod, node) }
		switch {
		case slices.ContainsFunc(ready, fits), !fits(template), upcoming, int(replicas) >= most:
		default:
			a.scaleMachineSet(name, replicas+1)
			return replicas + 1
		}
	}
	return replicas
}

// readyNodes returns the nodes of a MachineSet that count as ready. Nodes with a start-up taint do not count.
func (a autoscaler) readyNodes(set string) (ready []*corev1.Node) {
	a.Helper()
	machines, err := a.Machines(a.Context(), set)
	a.requireNoError(err)
	for _, m := range machines {
		if m.Status.NodeRef == nil {
			continue
		}
		node := &corev1.Node{}
		if err := a.Client.Get(a.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
			a.requireNoError(client.IgnoreNotFound(err))
			continue
		}
		if isNodeReady(node) && !slices.ContainsFunc(node.Spec.Taints, isStartupTaint) {
			ready = append(ready, node)
		}
	}
	return ready
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func isStartupTaint(taint corev1.Taint) bool {
	return strings.HasPrefix(taint.Key, "startup-taint.cluster-autoscaler.kubernetes.io/") ||
		strings.HasPrefix(taint.Key, "ignore-taint.cluster-autoscaler.kubernetes.io/")
}

// templateNode returns the node that the autoscaler expects of an empty MachineSet: a Linux node, unless annotations of
// the MachineSet describe another node.
func (a autoscaler) templateNode(set *machinev1.MachineSet) *corev1.Node {
	a.Helper()
	node := &corev1.Node{}
	node.Labels = map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	maps.Copy(node.Labels, set.Spec.Template.Spec.Labels)
	for label := range strings.SplitSeq(set.Annotations[annotationCapacityLabels], ",") {
		if key, value, ok := strings.Cut(label, "="); ok {
			node.Labels[key] = value
		}
	}
	node.Spec.Taints = set.Spec.Template.Spec.Taints
	for text := range strings.SplitSeq(set.Annotations[annotationCapacityTaints], ",") {
		if pair, effect, ok := strings.Cut(text, ":"); ok {
			key, value, _ := strings.Cut(pair, "=")
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return node
}

// pendingPods returns the pods that the scheduler could not assign to a node.
func (a autoscaler) pendingPods() []corev1.Pod {
	a.Helper()
	var pods corev1.PodList
	a.requireNoError(a.Client.List(a.Context(), &pods))
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName != "" || !isUnschedulable(&pod)
	})
}

func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
	})
}

// canSchedule reports whether the node selector and the tolerations of a pod match a node.
func canSchedule(pod *corev1.Pod, node *corev1.Node) bool {
	return labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) &&
		!slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return !slices.ContainsFunc(pod.Spec.Tolerations, func(toleration corev1.Toleration) bool {
				return toleration.ToleratesTaint(klog.Background(), &taint, false)
			})
		})
}

// For a Windows pod, an empty MachineSet is scaled up by one Machine, and not further while the operator checks the
// new node. R-048
func TestAutoscaler_AddsOneMachineForPod(t *testing.T) {
	l := start(t, "AWS", testenv.Options{LinuxNodes: 1, BareNodes: true})
	boots := l.InjectVM(testenv.VMFault{Machine: "*", UserDataHangs: true})
	defer boots()
	l.startOperator()
	l.createMachineSet("windows", 0, testenv.MachineSetOptions{})
	l.annotateMachineSet("windows", "3")
	scaler := autoscaler{l}

	linux := l.pendingPod(func(spec *corev1.PodSpec) { spec.Tolerations = nil })
	older := l.pendingPod(func(spec *corev1.PodSpec) { spec.NodeSelector[corev1.LabelWindowsBuild] = "10.0.17763" })
	if n := scaler.scaleUp("windows"); n != 0 {
		t.Fatalf("pods that cannot run there have the MachineSet scaled up to %d", n)
	}
	l.requireNoError(l.Client.Delete(t.Context(), linux, client.GracePeriodSeconds(0)))
	l.requireNoError(l.Client.Delete(t.Context(), older, client.GracePeriodSeconds(0)))
	l.pendingPod(func(spec *corev1.PodSpec) { spec.NodeSelector[corev1.LabelWindowsBuild] = "10.0.20348" })
	if n := scaler.scaleUp("windows"); n != 1 {
		t.Fatalf("a pod for Windows has the empty MachineSet scaled up to %d", n)
	}

	name := l.waitForOnlyMachine("windows")
	l.inTime(func(ctx context.Context) error {
		return l.WaitForMachines(ctx, "windows", "to have a host", func([]machine) bool { return l.MachineHost(name) != nil })
	})
	starts := l.MachineHost(name).Machine().FailServiceStart("kube-proxy", 1)
	defer starts()
	boots()
	l.waitForInstance(name, "to have a service that does not start", hasSummary("ServiceFailed"))
	var node *corev1.Node
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "the Node to report Ready", &corev1.Node{}, func(context.Context, client.Reader) (bool, error) {
			node = l.nodeOf(name)
			return isNodeReady(node), nil
		})
	})
	if n := scaler.scaleUp("windows"); n != 1 {
		t.Fatalf("a node that is not verified has the MachineSet scaled up to %d; its taints are %v", n, node.Spec.Taints)
	}
	starts()
	l.waitUntilReady("windows", 1)
	if n := scaler.scaleUp("windows"); n != 1 {
		t.Errorf("a node that takes the pod has the MachineSet scaled up to %d", n)
	}
}

// annotateMachineSet sets the annotations of a MachineAutoscaler and of a generated MachineSet.
func (l lab) annotateMachineSet(name, most string) {
	l.Helper()
	set := &machinev1.MachineSet{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: name}, set))
	generated, err := machineset.Generate(machineset.Options{
		Platform: configv1.AWSPlatformType, InfrastructureName: "lab", Version: "2022", Image: "ami-00000000000002022",
		Worker: set.Spec.Template.Spec.ProviderSpec.Value,
	})
	l.requireNoError(err)
	before := set.DeepCopy()
	set.Annotations = generated.Annotations
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, annotationMax, most)
	l.requireNoError(l.Client.Patch(l.Context(), set, client.MergeFrom(before)))
}

// pendingPod creates a modified Windows pod, and waits until the scheduler reports the pod as unschedulable.
func (l lab) pendingPod(change func(*corev1.PodSpec)) *corev1.Pod {
	l.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "windows-"},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
			Tolerations:  []corev1.Toleration{{Key: "os", Value: "Windows", Effect: corev1.TaintEffectNoSchedule}},
			Containers:   []corev1.Container{{Name: "web", Image: "example.com/web:1"}},
		},
	}
	change(&pod.Spec)
	l.requireNoError(l.Client.Create(l.Context(), pod))
	l.Cleanup(func() {
		l.requireNoError(client.IgnoreNotFound(l.Client.Delete(context.Background(), pod, client.GracePeriodSeconds(0))))
	})
	key := client.ObjectKeyFromObject(pod)
	l.inTime(func(ctx context.Context) error {
		return l.WaitFor(ctx, "the pod to have no node", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			found := &corev1.Pod{}
			err := reader.Get(ctx, key, found)
			return err == nil && isUnschedulable(found), client.IgnoreNotFound(err)
		})
	})
	return pod
}
