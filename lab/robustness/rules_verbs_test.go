package robustness

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

func TestRules_CommandMustNotDisruptEvictablePods(t *testing.T) {
	const sentence = "no verb disturbs pods that can be evicted on a node in service, unless the drain has timed out"
	// Objects follow each other by a minute. The command disrupts pods just after the last but one of five.
	disturbed := func(objects ...client.Object) past {
		p := newHistory(objects...)
		for range 4 { // time passes
			p.Changes = append(p.Changes, testenv.Change{Revision: uint64(len(p.Changes) + 1),
				At: noon.Add(time.Duration(len(p.Changes)) * time.Minute), Kind: kindNode, Name: "/b", Object: newNode("b")})
		}
		p.PodDisruptions = []PodDisruption{{Node: "a", Verb: "apply", What: "service Stop containerd", At: noon.Add(4*time.Minute + minPodAge/2)}}
		return p
	}
	a, held, web := newNode("a"), newPolicy(1, newDisruption("a", 0)), newPod("web", "1", "a")
	drained := newNode("a", setCordoned)
	ending := newPod("web", "1", "a", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) })
	uncordoned := newNode("a", func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationCordoned: "x"} })
	unready := newNode("a", func(n *corev1.Node) { n.Status.Conditions = nil })
	joining := newNode("a", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady}} })
	timedOut := newInstance("a", func(i *v1alpha1.WindowsInstance) {
		i.Status.NodeRef = &v1alpha1.NodeReference{Name: "a"}
		i.Status.FailedChange = &v1alpha1.FailedChange{DrainTimedOut: true}
	})
	for name, test := range map[string]struct {
		objects    []client.Object
		violations int
	}{
		"a pod that stays on a node without a cordon":     {[]client.Object{web, held, a, a, a}, 1},
		"a pod that stays, although the node is cordoned": {[]client.Object{web, held, drained, drained, a}, 1},
		"also without an entry":                           {[]client.Object{web, a, a, a, a}, 1},
		"a pod that is to end":                            {[]client.Object{web, held, drained, ending, a}, 0},
		"a pod that has come just now":                    {[]client.Object{held, drained, drained, web, a}, 0},
		"another one of its name, that came after":        {[]client.Object{web, held, drained, newPod("web", "2", "a"), a}, 0},
		"one on another node":                             {[]client.Object{newPod("web", "1", "b"), held, a, a, a}, 0},
		"where a user lets pods come again":               {[]client.Object{web, held, uncordoned, a, a}, 0},
		"on a node that did not work":                     {[]client.Object{web, held, unready, a, a}, 0},
		"on a node that was never in service":             {[]client.Object{web, held, joining, joining, joining}, 0},
		"after the drain has timed out":                   {[]client.Object{web, held, timedOut, a, a}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := disturbed(append([]client.Object{newNode("a")}, test.objects...)...)
			p.expectViolations(t, sentence, test.violations)
		})
	}
}

func TestRules_CommandsOfOneOperatorMustNotOverlap(t *testing.T) {
	const sentence = "verbs of one operator do not overlap on a host"
	ran := func(node string, operator int, from, to time.Duration) Verb {
		return Verb{Node: node, Name: "apply", Operator: operator, From: noon.Add(from), To: noon.Add(to)}
	}
	for name, test := range map[string]struct {
		verbs      []Verb
		violations int
	}{
		"one after the other":            {[]Verb{ran("a", 1, 0, time.Minute), ran("a", 1, time.Minute, time.Hour)}, 0},
		"one in the middle of another":   {[]Verb{ran("a", 1, 0, time.Hour), ran("a", 1, time.Minute, 2*time.Minute)}, 1},
		"in whichever order they ended":  {[]Verb{ran("a", 1, time.Minute, 2*time.Minute), ran("a", 1, 0, time.Hour)}, 1},
		"of two operators":               {[]Verb{ran("a", 1, 0, time.Hour), ran("a", 2, time.Minute, time.Hour)}, 0},
		"on two hosts":                   {[]Verb{ran("a", 1, 0, time.Hour), ran("b", 1, time.Minute, time.Hour)}, 0},
		"with an end that is noted late": {[]Verb{ran("a", 1, 0, time.Minute+overlapTolerance), ran("a", 1, time.Minute, time.Hour)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHistory()
			p.Verbs = test.verbs
			p.expectViolations(t, sentence, test.violations)
		})
	}
}

func TestJournal_PodDisruptionsAndCommandsExtracted(t *testing.T) {
	const agent = `C:\k\wicd\0123456789ab\wicd.exe `
	after := func(d time.Duration, kind fake.Kind, pid int, detail string) fake.Entry {
		return fake.Entry{Time: noon.Add(d), Kind: kind, PID: pid, Detail: detail}
	}
	t.Run("pods feel a service that stops, and a restart", func(t *testing.T) {
		got := podDisruptions("a", []fake.Entry{
			after(0, fake.KindProcess, 7, "start "+agent+"service"),
			after(1, fake.KindService, 7, "Stop containerd"), // the agent's service repairs
			after(2, fake.KindProcess, 8, "start "+agent+"apply --spec x"),
			after(3, fake.KindService, 8, "Stop kubelet"),
			after(4, fake.KindService, 8, "Stop containerd"),
			after(5, fake.KindReboot, 0, "somebody else's"),
			after(6, fake.KindProcess, 8, `start C:\other.exe`),
			after(7, fake.KindService, 8, "Stop containerd"),
			after(8, fake.KindProcess, 9, "start "+agent+"reboot --boot-id x"),
			after(9, fake.KindReboot, 9, "patches"),
		})
		want := []PodDisruption{{"a", "apply", "service Stop containerd", noon.Add(4)}, {"a", "reboot", "reboot patches", noon.Add(9)}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a verb ends with its session or its operator's connection", func(t *testing.T) {
		clock := clocktesting.NewFakeClock(noon)
		c := &connections{clock: clock, byClientAddress: map[string][]*connected{}}
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		conn, err := c.wrapDial(3, func(context.Context, string, string) (net.Conn, error) { return near, nil })(t.Context(), "tcp", "a:22")
		if err != nil {
			t.Fatal(err)
		}
		session := func(d time.Duration, what, client, line string) fake.Entry {
			return after(d, winhost.KindSession, 0, what+" "+client+" "+line)
		}
		journal := []fake.Entry{
			session(1*time.Second, winhost.SessionBegan, "pipe", agent+"facts"),
			session(2*time.Second, winhost.SessionEnded, "pipe", agent+"facts"),
			session(3*time.Second, winhost.SessionBegan, "stranger", agent+"facts"),
			session(4*time.Second, winhost.SessionBegan, "pipe", "hostname"),
			session(5*time.Second, winhost.SessionBegan, "pipe", agent+"apply --spec x"),
			session(9*time.Second, winhost.SessionEnded, "pipe", agent+"apply --spec x"),
			session(6*time.Second, winhost.SessionBegan, "pipe", agent+"verify"),
		}
		clock.SetTime(noon.Add(time.Minute))
		want := []Verb{{"a", "facts", 3, noon.Add(time.Second), noon.Add(2 * time.Second)},
			{"a", "apply", 3, noon.Add(5 * time.Second), noon.Add(9 * time.Second)},
			{"a", "verify", 3, noon.Add(6 * time.Second), noon.Add(time.Minute)}}
		if diff := cmp.Diff(want, c.operatorVerbs("a", journal)); diff != "" {
			t.Errorf("while it is open: %s", diff)
		}
		clock.SetTime(noon.Add(8 * time.Second))
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		want[1].To, want[2].To = noon.Add(8*time.Second), noon.Add(8*time.Second)
		if diff := cmp.Diff(want, c.operatorVerbs("a", journal)); diff != "" {
			t.Errorf("when it is closed: %s", diff)
		}
	})
}
