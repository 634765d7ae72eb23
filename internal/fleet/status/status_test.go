package status

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

var now = time.Date(2026, 3, 1, 14, 30, 0, 0, time.UTC)

func timeBefore(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func newCondition(kind string, status metav1.ConditionStatus, reason, message string, since time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: timeBefore(since)}
}

// newReadyInstance returns a working instance.
func newReadyInstance(number int) fleet.Instance {
	name := fmt.Sprintf("win-%d", number)
	return fleet.Instance{WindowsInstance: v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "wmco", UID: types.UID(name), CreationTimestamp: timeBefore(time.Hour)},
		Spec: v1alpha1.WindowsInstanceSpec{Address: fmt.Sprintf("10.0.0.%d", number), Username: "Administrator",
			Source: v1alpha1.Source{ConfigMapKey: fmt.Sprintf("10.0.0.%d", number)}},
		Status: v1alpha1.WindowsInstanceStatus{
			Summary: "Ready", Version: "12.0.0", NodeRef: &v1alpha1.NodeReference{Name: name},
			Host: &v1alpha1.HostStatus{Name: strings.ToUpper(name), Product: "Windows Server 2022 Datacenter",
				Build: "10.0.20348.2113"},
			HostKey:   &v1alpha1.HostKey{Type: "ssh-ed25519", Fingerprint: "SHA256:abc"},
			Readiness: &v1alpha1.Readiness{Ready: true, Since: timeBefore(50 * time.Minute)},
			Conditions: []metav1.Condition{
				newCondition("Reachable", "True", "Succeeded", "", 59*time.Minute),
				newCondition("Ready", "True", "Succeeded", "", 50*time.Minute),
				newCondition("UpToDate", "True", "Succeeded", "", 50*time.Minute),
			},
		},
	}}
}

// withFalseCondition returns an instance with a False condition.
func withFalseCondition(i fleet.Instance, kind, reason, message, next string) fleet.Instance {
	i.Status.Summary, i.Status.NextAction = reason, next
	i.Status.Conditions = append(i.Status.Conditions[:1:1], newCondition(kind, "False", reason, message, 5*time.Minute))
	return i
}

func fleetOf(instances ...fleet.Instance) fleet.Fleet {
	return fleet.Fleet{Instances: instances, Policies: []v1alpha1.WindowsDisruptionPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "wmco"},
		Status: v1alpha1.WindowsDisruptionPolicyStatus{Summary: "2 of 3 nodes have version 12.0.0.",
			Disruptions: []v1alpha1.Disruption{{Instance: "win-2", InstanceUID: "win-2", Pool: "Hosts",
				Cause: v1alpha1.CauseUpgrade, Since: timeBefore(3 * time.Minute)}}},
	}}}
}

var update = flag.Bool("update", false, "write the golden files")

// compareGolden compares an output with its golden file.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); go test ./internal/fleet/status -update writes it:\n%s", path, diff)
	}
}

func TestTable_MatchesGolden(t *testing.T) {
	waiting := withFalseCondition(newReadyInstance(3), v1alpha1.ConditionUpToDate, "MaxUnavailableReached", "1 node may be unavailable.",
		"The operator changes the node when the WindowsDisruptionPolicy allows it.")
	waiting.Status.DisruptionPending = true
	blocked := withFalseCondition(newReadyInstance(2), v1alpha1.ConditionReady, "DrainBlocked", "Node win-2 is not drained yet.",
		"The operator continues when the pods are evicted. If a PodDisruptionBudget allows no disruption, its owner must change it.")
	fresh := fleet.Instance{WindowsInstance: v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "win-4", Namespace: "wmco", CreationTimestamp: timeBefore(time.Second)},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.4",
			Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: "win-4"}}},
	}}
	for name, v := range map[string]view{
		"table":            {width: 80},
		"table in a pipe":  {},
		"table wide":       {wide: true},
		"table namespaces": {namespaces: true, noHeaders: true},
	} {
		t.Run(name, func(t *testing.T) {
			v.now = now
			var out bytes.Buffer
			if err := v.printTable(&out, fleetOf(newReadyInstance(1), blocked, waiting, fresh)); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, strings.ReplaceAll(name, " ", "-"), out.String())
		})
	}
}

func TestReasons_HostsInSameStateShareParagraph(t *testing.T) {
	var instances []fleet.Instance
	for n := range 200 {
		instances = append(instances, withFalseCondition(newReadyInstance(n), v1alpha1.ConditionUpToDate, "MaxUnavailableReached", "", "Its turn comes."))
	}
	paragraphs := view{now: now}.formatReasons(fleet.Fleet{Instances: instances})
	want := []string{"MaxUnavailableReached: win-0, win-1, win-2, win-3, win-4 and 195 more\n  Its turn comes."}
	if diff := cmp.Diff(want, paragraphs); diff != "" {
		t.Error(diff)
	}
}

func TestReasons_DifferentRetryTimesShareParagraph(t *testing.T) {
	var instances []fleet.Instance
	for n := range 3 {
		instances = append(instances, withFalseCondition(newReadyInstance(n), v1alpha1.ConditionReachable, "Unreachable", "",
			fmt.Sprintf("The operator tries 10.0.0.%d again at 14:3%d:00.", n, n)))
	}
	instances = append(instances, withFalseCondition(newReadyInstance(3), v1alpha1.ConditionReachable, "Unreachable", "", "Start the host."))
	want := []string{"Unreachable: win-0, win-1, win-2\n  The operator tries 10.0.0.0 again at 14:30:00.",
		"Unreachable: win-3\n  Start the host."}
	if diff := cmp.Diff(want, (view{now: now}).formatReasons(fleet.Fleet{Instances: instances})); diff != "" {
		t.Error(diff)
	}
}

func TestTable_FitsTerminalWidth(t *testing.T) {
	long := newReadyInstance(1)
	long.Name, long.Status.NodeRef.Name = "winworker-us-east-1a-x7k2p", "ip-10-0-141-23.us-east-2.compute.internal"
	long.Status.Summary = "OutsideMaintenanceWindow"
	for width, want := range map[int]string{
		0:   "NAME ADDRESS SOURCE NODE VERSION STATE SINCE",
		200: "NAME ADDRESS SOURCE NODE VERSION STATE SINCE",
		130: "NAME ADDRESS NODE VERSION STATE SINCE",
		115: "NAME NODE VERSION STATE SINCE",
		80:  "NAME STATE SINCE",
		10:  "NAME STATE SINCE",
	} {
		var out bytes.Buffer
		if err := (view{now: now, width: width}).printTable(&out, fleetOf(long)); err != nil {
			t.Fatal(err)
		}
		header, rest, _ := strings.Cut(out.String(), "\n")
		row, _, _ := strings.Cut(rest, "\n")
		if got := strings.Join(strings.Fields(header), " "); got != want {
			t.Errorf("%d columns: %s, want %s", width, got, want)
		}
		if width >= 65 && len(row) > width {
			t.Errorf("a row has %d characters in a terminal of %d", len(row), width)
		}
	}
}

func TestOneHost(t *testing.T) {
	i := withFalseCondition(newReadyInstance(2), v1alpha1.ConditionReady, "DrainBlocked",
		"Node win-2 is not drained yet. These PodDisruptionBudgets allow no disruption now: web/web.",
		"The operator continues when the pods are evicted.")
	i.Spec.Paused = true
	i.Status.Step = &v1alpha1.StepStatus{Name: "SendPayload", Index: 3, Total: 20, Detail: "12 of 40 MB", StartedAt: timeBefore(time.Minute)}
	i.Status.FailedChange = &v1alpha1.FailedChange{Cause: v1alpha1.CauseUpgrade, Reason: "ChecksFailed",
		Message: "The kubelet did not answer.", Time: timeBefore(10 * time.Minute), Attempts: 2, RolledBack: true,
		RetryAfter: &metav1.Time{Time: now.Add(20 * time.Minute)}}
	i.Status.Certificates = []v1alpha1.CertificateStatus{{Name: "cloud-node-manager", NotAfter: timeBefore(-240 * time.Hour)}}
	events := []corev1.Event{
		{Type: "Normal", Reason: "Listed", Message: "Key 10.0.0.2 lists this host.", EventTime: metav1.NewMicroTime(now.Add(-time.Hour))},
		{Type: "Warning", Reason: "ChangeFailed", Message: "line\x1b[2J one\nline two", LastTimestamp: timeBefore(time.Minute), Count: 3},
		{Type: "Warning", Reason: "Often", Message: "again",
			Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(now)}},
	}
	var out bytes.Buffer
	if err := (view{now: now, width: 100}).printInstance(&out, fleetOf(i), i, events); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "one", out.String())
}

func TestWrapWithLabel_NoLineExceedsWidth(t *testing.T) {
	text := strings.Repeat("word ", 60) + strings.Repeat("x", 120)
	for _, line := range strings.Split(wrapWithLabel("Label:  ", text, 72), "\n") {
		if len(line) > 72 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}
