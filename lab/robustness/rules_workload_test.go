package robustness

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

func newPod(name, uid, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workloadNamespace, Name: name, UID: types.UID(uid)},
		Spec: corev1.PodSpec{NodeName: node}}
	for _, each := range change {
		each(p)
	}
	return p
}

func TestRules_PodMustNotSurviveRestartOfDrainedNode(t *testing.T) {
	const sentence = "no pod lives through the restart of a node that was to be drained"
	// Objects follow each other by a minute. The host restarts just after the last but one of five.
	restarted := func(objects ...client.Object) past {
		p := newHistory(objects...)
		for range 4 { // time passes
			p.Changes = append(p.Changes, testenv.Change{Revision: uint64(len(p.Changes) + 1),
				At: noon.Add(time.Duration(len(p.Changes)) * time.Minute), Kind: kindNode, Name: "/b", Object: newNode("b")})
		}
		p.Restarts = []Restart{{"a", noon.Add(4*time.Minute + minPodAge/2)}}
		return p
	}
	a, held, web := newNode("a"), newPolicy(1, newDisruption("a", 0)), newPod("web", "1", "a")
	ending := newPod("web", "1", "a", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) })
	uncordoned := newNode("a", func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationCordoned: "x"} })
	unready := newNode("a", func(n *corev1.Node) { n.Status.Conditions = nil })
	for name, test := range map[string]struct {
		objects    []client.Object
		violations int
	}{
		"a pod that has come just now":               {[]client.Object{held, a, a, web, a}, 0},
		"a pod that was there before, and stays":     {[]client.Object{web, held, a, a, a}, 1},
		"one that is to end":                         {[]client.Object{web, held, a, ending, a}, 0},
		"another one of its name, that came after":   {[]client.Object{web, held, a, newPod("web", "2", "a"), a}, 0},
		"one on another node":                        {[]client.Object{newPod("web", "1", "b"), held, a, a, a}, 0},
		"a restart without an entry is another rule": {[]client.Object{web, a, a, a, a}, 0},
		"where a user lets pods come again":          {[]client.Object{web, held, uncordoned, a, a}, 0},
		"on a node that did not work":                {[]client.Object{web, held, unready, a, a}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := restarted(append([]client.Object{newNode("a")}, test.objects...)...)
			p.expectViolations(t, sentence, test.violations)
		})
	}
}

func TestRules_SurvivingPodFoundAtAnyLastChange(t *testing.T) {
	const sentence = "no pod lives through the restart of a node that was to be drained"
	a, web := newNode("a"), newPod("web", "1", "a")
	restarted := func(after time.Duration, objects ...client.Object) past {
		p := newHistory(objects...)
		p.Restarts = []Restart{{"a", noon.Add(after)}}
		return p
	}
	restarted(time.Hour, a, web, newPolicy(1, newDisruption("a", 0))).expectViolations(t, sentence, 1) // no events for a long time, neither before nor after
	restarted(time.Hour, a, newPolicy(1, newDisruption("a", 0)), web).expectViolations(t, sentence, 1)
	restarted(time.Hour, a, web, newPolicy(1)).expectViolations(t, sentence, 0)
	// The last change before the restart is the deletion of the Node. The API server keeps the pods for a while.
	for _, before := range []time.Duration{30 * time.Second, minPodAge / 2} {
		p := restarted(3*time.Minute+before, a, web, newPolicy(1, newDisruption("a", 0)), newNode("a"), newNode("b"))
		p.Changes[3].Object = nil
		p.expectViolations(t, sentence, 0)
		p.Restarts[0].At = p.Changes[3].At.Add(-time.Second) // deleted afterwards
		p.expectViolations(t, sentence, 1)
	}
}
