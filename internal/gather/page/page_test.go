package page

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

var now = time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)

func timeBefore(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// newHost returns an instance that has been working for the given age.
func newHost(number int, age time.Duration) fleet.Instance {
	name := fmt.Sprintf("win-%d", number)
	i := fleet.Instance{WindowsInstance: v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "wmco", UID: types.UID(name), CreationTimestamp: timeBefore(age)},
		Spec: v1alpha1.WindowsInstanceSpec{Address: fmt.Sprintf("10.0.0.%d", number), Username: "Administrator",
			Source: v1alpha1.Source{ConfigMapKey: fmt.Sprintf("10.0.0.%d", number)}},
		Status: v1alpha1.WindowsInstanceStatus{Summary: "Ready", Version: "12.0.0", NodeRef: &v1alpha1.NodeReference{Name: name},
			Host:      &v1alpha1.HostStatus{Name: name, Product: "Windows Server 2022 Datacenter", Build: "10.0.20348.2113"},
			Readiness: &v1alpha1.Readiness{Ready: true, Since: timeBefore(age / 2)}},
	}}
	for n, kind := range lanes {
		i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonSucceeded, LastTransitionTime: timeBefore(age - time.Duration(n)*time.Minute)})
	}
	return i
}

// withFailedCondition sets a condition of an instance to False.
func withFailedCondition(i fleet.Instance, kind, reason, message string) fleet.Instance {
	i.Status.Summary, i.Status.NextAction = reason, "Somebody does something."
	i.Status.Conditions = slices.Clone(i.Status.Conditions)
	for n := range i.Status.Conditions {
		if c := &i.Status.Conditions[n]; c.Type == kind || c.Type == v1alpha1.ConditionReady {
			c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionFalse, reason, message, timeBefore(5*time.Minute)
		}
	}
	return i
}

const hostile = `</title></style><script>alert(1)</script><img src=x onerror=alert(1)> "' javascript:alert(1)`

func newSampleInput() Input {
	unreachable := withFailedCondition(newHost(2, 50*24*time.Hour), v1alpha1.ConditionReachable, "ConnectionTimedOut", "No answer from 10.0.0.2. "+hostile)
	unreachable.Status.FailedChange = &v1alpha1.FailedChange{Cause: v1alpha1.CauseUpgrade, Reason: "ChecksFailed", Message: hostile,
		Time: timeBefore(time.Hour), Attempts: 2, RolledBack: true, RetryAfter: &metav1.Time{Time: now.Add(time.Hour)}}
	silent := newHost(3, time.Hour)
	broken := withFailedCondition(newHost(4, 10*time.Minute), v1alpha1.ConditionInstalled, "StepFailed", "The disk is full.")
	behind := newHost(5, time.Hour)
	behind.Status.Conditions[len(lanes)-1].Status = metav1.ConditionFalse
	behind.Status.Conditions[len(lanes)-1].Reason = "MaxUnavailableReached"
	behind.Status.Summary = "MaxUnavailableReached"
	fresh := fleet.Instance{WindowsInstance: v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "win-6", Namespace: "wmco", CreationTimestamp: timeBefore(0)},
		Spec:       v1alpha1.WindowsInstanceSpec{Address: hostile, Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: "win-6"}}}}}
	in := Input{Now: now, Gaps: []string{"a log: " + hostile},
		Fleet: fleet.Fleet{Instances: []fleet.Instance{newHost(1, time.Hour), unreachable, silent, broken, behind, fresh, newHost(7, time.Hour)},
			Policies: []v1alpha1.WindowsDisruptionPolicy{{Status: v1alpha1.WindowsDisruptionPolicyStatus{Summary: "2 of 3 nodes. " + hostile}}}},
		Nodes: map[string]corev1.Node{"win-3": {ObjectMeta: metav1.ObjectMeta{Name: "win-3"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastHeartbeatTime: timeBefore(time.Hour)}}}}},
	}
	for _, i := range in.Fleet.Instances[:6] {
		in.Hosts = append(in.Hosts, Host{Instance: i, Files: []string{"hosts/" + i.Name + "/status.txt"}, Events: []corev1.Event{
			{Type: "Normal", Reason: "Listed", Message: "Key lists this host.", LastTimestamp: timeBefore(time.Hour)},
			{Type: "Warning", Reason: "StepFailed", Message: hostile, LastTimestamp: timeBefore(time.Minute), Count: 3}}})
	}
	return in
}

// renderPage returns the page as parsed by a browser's parser.
func renderPage(t *testing.T, in Input) *html.Node {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, in); err != nil {
		t.Fatal(err)
	}
	document, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func attributeValue(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// findElements returns the elements with a name, or with an id if the name begins with #.
func findElements(below *html.Node, name string) []*html.Node {
	var found []*html.Node
	for n := range below.Descendants() {
		id, byID := strings.CutPrefix(name, "#")
		if n.Type == html.ElementNode && (n.Data == name || byID && attributeValue(n, "id") == id) {
			found = append(found, n)
		}
	}
	return found
}

func textContent(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	}
	return text.String()
}

func TestPage_UnhealthyHostsNamedAtTop(t *testing.T) {
	document := renderPage(t, newSampleInput())
	for id, want := range map[string][]string{
		"#dead":     {"2 of 7 hosts are unreachable", "win-2 (ConnectionTimedOut): No answer", "win-3 (Ready): the kubelet of node win-3 has not reported since 2026-03-01 13:30:00 UTC"},
		"#troubled": {"2 of 7 hosts are not Ready for another reason", "win-4 (StepFailed): The disk is full.", "win-6 (Pending)"},
		"#behind":   {"1 of 7 hosts is Ready and not up to date", "win-5 (MaxUnavailableReached)"},
	} {
		found := findElements(document, id)
		if len(found) != 1 {
			t.Errorf("%s is there %d times", id, len(found))
			continue
		}
		for _, text := range want {
			if !strings.Contains(textContent(found[0]), text) {
				t.Errorf("%s lacks %q: %s", id, text, textContent(found[0]))
			}
		}
	}
	if rows := findElements(findElements(document, "#fleet")[0], "tr"); len(rows) != 8 {
		t.Errorf("the table has %d rows", len(rows))
	}
	if fine := findElements(document, "#fine"); len(fine) > 0 {
		t.Error("the page says that all is well")
	}
	well := Input{Now: now, Fleet: fleet.Fleet{Instances: []fleet.Instance{newHost(1, time.Hour)}}}
	if fine := findElements(renderPage(t, well), "#fine"); len(fine) != 1 || textContent(fine[0]) != "All hosts are Ready and up to date" {
		t.Error("the page of a fleet that is well does not say so")
	}
}

func TestPage_HostHasTimelineFailureAndEvents(t *testing.T) {
	document := renderPage(t, newSampleInput())
	unreachable := findElements(document, "#host-2")[0]
	for _, text := range []string{"Why:", "No answer from 10.0.0.2.", "Next:", "Somebody does something.", "Last failure",
		"The host was rolled back.", "or at once with: kubectl windows retry win-2", "StepFailed (3 times)",
		"hosts/win-2/status.txt"} {
		if !strings.Contains(textContent(unreachable), text) {
			t.Errorf("the section lacks %q", text)
		}
	}
	if bars := findElements(unreachable, "rect"); len(bars) != len(lanes) || attributeValue(bars[0], "class") != "false" || attributeValue(bars[1], "class") != "true" {
		t.Errorf("%d bars", len(bars))
	}
	if dots := findElements(unreachable, "circle"); len(dots) != 2 || attributeValue(dots[1], "class") != "warning" {
		t.Errorf("%d dots", len(dots))
	}
	if well := findElements(document, "#host-1")[0]; slices.ContainsFunc(well.Attr, func(a html.Attribute) bool { return a.Key == "open" }) {
		t.Error("a host that is well is open")
	}
}

func TestPage_SelfContainedWithoutScripts(t *testing.T) {
	document := renderPage(t, newSampleInput())
	ids := map[string]bool{}
	for n := range document.Descendants() {
		ids[attributeValue(n, "id")] = true
	}
	policy := ""
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "img", "link", "iframe", "object", "embed", "base", "image", "use", "foreignobject", "form":
			t.Errorf("there is an element %s", n.Data)
		case "meta":
			policy += attributeValue(n, "content")
		case "style":
			if strings.Contains(textContent(n), "url(") || strings.Contains(textContent(n), "@import") {
				t.Error("the style refers to something else")
			}
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "style" {
				t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
			}
			target, inside := strings.CutPrefix(a.Val, "#")
			if a.Key == "href" && (inside && !ids[target] || !inside && !strings.HasPrefix(a.Val, "hosts/")) {
				t.Errorf("a link leads to %q", a.Val)
			}
		}
	}
	if !strings.Contains(policy, "default-src 'none'") {
		t.Error("a browser may load something")
	}
	if count := strings.Count(textContent(document), "<script>alert(1)</script>"); count < 5 {
		t.Errorf("what a host says is shown as it is in %d places", count)
	}
}

func TestScale_LastHourHasMoreWidth(t *testing.T) {
	for _, age := range []time.Duration{0, time.Minute, time.Hour, 400 * 24 * time.Hour} {
		s := scale{now: now, total: max(age, time.Minute)}
		if at := s.positionOf(now.Add(-s.total)); at != left {
			t.Errorf("%s: the time begins at %f", age, at)
		}
		if s.positionOf(now) != right || s.positionOf(now.Add(time.Hour)) != right || s.positionOf(now.Add(-1000*24*time.Hour)) != left {
			t.Errorf("%s: a time is beside the axis", age)
		}
		last := -1.0
		ticks := s.axisTicks()
		slices.SortFunc(ticks, func(a, b tick) int { return int(tickPosition(t, a) - tickPosition(t, b)) })
		for _, mark := range ticks {
			if tickPosition(t, mark)-last < minTickDistance && mark.Label != "now" && last > left {
				t.Errorf("%s: %s is at %s, too near to the one at %f", age, mark.Label, mark.X, last)
			}
			last = tickPosition(t, mark)
		}
	}
	s := scale{now: now, total: 50 * 24 * time.Hour}
	if recent := right - s.positionOf(now.Add(-time.Hour)); recent < 200 {
		t.Errorf("the last hour of 50 days has %f of %f", recent, right-left)
	}
}

func tickPosition(t *testing.T, mark tick) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(mark.X, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestLane_ShortBarTextOutside(t *testing.T) {
	s := scale{now: now, total: time.Hour}
	long := s.newLane(metav1.Condition{Type: "Ready", Status: "True", LastTransitionTime: timeBefore(time.Hour)}, 0)
	short := s.newLane(metav1.Condition{Type: "Ready", Status: "False", Reason: "StepFailed", LastTransitionTime: timeBefore(time.Second)}, 0)
	if long.In != "inside" || long.Text != "True for 60m" || short.In != "outside" || short.Text != "False: StepFailed for 1s" {
		t.Errorf("%+v\n%+v", long, short)
	}
}
