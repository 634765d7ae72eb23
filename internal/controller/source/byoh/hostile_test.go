package byoh

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// maxNoteLength is the maximum length of an event's note in bytes, a limit of the API server.
const maxNoteLength = 1024

// for any content of the list, each entry is a host or a reported fault, and delays no other entry.
func TestDesiredInstances_AnyEntryBlocksNoOther(t *testing.T) {
	// The keys that the API server accepts in a ConfigMap.
	key := rapid.StringMatching(`[-._a-zA-Z0-9]{1,253}`)
	value := rapid.OneOf(rapid.String(), rapid.Map(rapid.String(), func(user string) string { return "username=" + user }),
		rapid.SampledFrom([]string{"username=-oProxyCommand=calc", "username=a\nb", `username="a"`, "username=\u202eadmin",
			"username=" + strings.Repeat("a", 1<<20)}))
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.MapOfN(key, value, 0, 8).Draw(t, "entries")
		entries["10.1.42.1"] = "username=Administrator"
		instances, faults := desiredInstances("wmco", entries)
		if len(instances) != len(entries) {
			t.Fatalf("%d instances of %d entries", len(instances), len(entries))
		}
		faulty := map[string]bool{}
		for _, fault := range faults {
			faulty[fault.key] = true
			note := invalidEntry(&corev1.ConfigMap{}, fault).Message
			if len(note) > maxNoteLength || !utf8.ValidString(note) || strings.ContainsFunc(note, func(r rune) bool {
				return !unicode.IsPrint(r)
			}) {
				t.Errorf("an event says %q", note)
			}
		}
		names := map[string]bool{}
		for _, instance := range instances {
			if problems := validation.IsDNS1123Subdomain(instance.Name); len(problems) > 0 || names[instance.Name] {
				t.Errorf("%q becomes %q: %v", instance.Spec.Address, instance.Name, problems)
			}
			names[instance.Name] = true
			if (instance.Spec.Username == "") != faulty[instance.Spec.Source.ConfigMapKey] {
				t.Errorf("user %q, told as a fault: %t", instance.Spec.Username, faulty[instance.Spec.Source.ConfigMapKey])
			}
			if instance.Spec.Address == "10.1.42.1" && instance.Spec.Username != "Administrator" {
				t.Error("a good entry was not taken")
			}
		}
	})
}

// manyEntries returns n entries from 10.0.0.0 to 10.255.255.255.
func manyEntries(n int) map[string]string {
	entries := make(map[string]string, n)
	for i := range n {
		entries[fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)] = "username=Administrator"
	}
	return entries
}

func TestLimitCreations_BoundsNumberOfHosts(t *testing.T) {
	listed, _ := desiredInstances("wmco", map[string]string{"zzz.example.com": "username=core",
		"gone.example.com": "username=core"})
	entries := manyEntries(5000)
	entries["zzz.example.com"] = "username=other" // the last in the sort order
	desired, _ := desiredInstances("wmco", entries)
	accepted, faults := limitCreations(diffInstances(listed, desired), len(listed))
	created := 0
	states := map[string]v1alpha1.DesiredState{}
	for _, change := range accepted {
		if change.IsCreation() {
			created++
			continue
		}
		states[change.After.Spec.Address] = change.After.Spec.DesiredState
	}
	if created+len(listed) != maxHosts || len(faults) != 5000-created {
		t.Errorf("%d were made and %d told as left out", created, len(faults))
	}
	if states["zzz.example.com"] != v1alpha1.DesiredStateNode ||
		states["gone.example.com"] != v1alpha1.DesiredStateRemoved {
		t.Errorf("hosts that were there before are to be %v", states)
	}
	if note := invalidEntry(&corev1.ConfigMap{}, faults[0]).Message; !strings.Contains(note, "more than 2000 hosts") ||
		!strings.Contains(note, faults[0].key) {
		t.Errorf("told is %q", note)
	}
}

func TestReportFaults_ManyFaultsInFewEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(10_000)
	r := &Reconciler{Namespace: "wmco", Events: recorder}
	entries := manyEntries(5000)
	for key := range entries {
		entries[key] = "user=core"
	}
	_, faults := desiredInstances("wmco", entries)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: ConfigMapName,
		ResourceVersion: "1"}}
	r.reportFaults(configMap, faults)
	r.reportFaults(configMap, faults)
	if n := len(recorder.Events); n != maxReportedEntries+1 {
		t.Fatalf("%d events", n)
	}
	last := ""
	for range maxReportedEntries + 1 {
		last = <-recorder.Events
	}
	if !strings.Contains(last, "4950 more entries") {
		t.Errorf("the last says %q", last)
	}
}
