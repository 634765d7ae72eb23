package byoh

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// each valid entry becomes an instance; a malformed entry is reported and delays no other entry.
func TestDesiredInstances_OneForEachEntry(t *testing.T) {
	instances, faults := desiredInstances("wmco", map[string]string{
		"10.1.42.1":            "username=Administrator",
		"instance.example.com": "username=core\n",
		"10.1.42.2":            "user=core",
		"10.1.42.3":            "username=",
	})
	if len(instances) != 4 {
		t.Fatalf("%d instances, want one for each entry so that a fault is seen", len(instances))
	}
	if len(faults) != 2 || faults[0].key != "10.1.42.2" || faults[1].key != "10.1.42.3" {
		t.Fatalf("faults are %+v", faults)
	}
	users := map[string]string{}
	names := map[string]bool{}
	for _, instance := range instances {
		users[instance.Spec.Address] = instance.Spec.Username
		names[instance.Name] = true
		if instance.Namespace != "wmco" || instance.Labels[v1alpha1.LabelSource] != v1alpha1.SourceConfigMap {
			t.Errorf("instance %s has namespace %q and labels %v", instance.Name, instance.Namespace, instance.Labels)
		}
	}
	if users["10.1.42.1"] != "Administrator" || users["instance.example.com"] != "core" || users["10.1.42.2"] != "" {
		t.Errorf("user names are %v", users)
	}
	if len(names) != 4 {
		t.Errorf("names are not unique: %v", names)
	}
}

func TestDiffInstances_ChangesFollowList(t *testing.T) {
	listed := func(entries map[string]string) []v1alpha1.WindowsInstance {
		instances, _ := desiredInstances("wmco", entries)
		return instances
	}
	one := listed(map[string]string{"10.0.0.1": "username=a"})

	t.Run("equal lists need no change", func(t *testing.T) {
		if got := diffInstances(one, listed(map[string]string{"10.0.0.1": "username=a"})); len(got) != 0 {
			t.Errorf("changes are %+v", got)
		}
	})
	t.Run("an added entry adds just that host", func(t *testing.T) {
		got := diffInstances(one, listed(map[string]string{"10.0.0.1": "username=a", "10.0.0.2": "username=b"}))
		if len(got) != 1 || got[0].Before != nil || got[0].After.Spec.Address != "10.0.0.2" {
			t.Errorf("changes are %+v", got)
		}
	})
	t.Run("a removed entry is marked for removal and not deleted", func(t *testing.T) {
		got := diffInstances(one, nil)
		if len(got) != 1 || got[0].After.Spec.DesiredState != v1alpha1.DesiredStateRemoved {
			t.Fatalf("changes are %+v", got)
		}
		if again := diffInstances([]v1alpha1.WindowsInstance{*got[0].After}, nil); len(again) != 0 {
			t.Errorf("it is marked again: %+v", again)
		}
	})
	t.Run("an entry that comes back while its host is being removed makes it a node again", func(t *testing.T) {
		removed := diffInstances(one, nil)[0].After
		got := diffInstances([]v1alpha1.WindowsInstance{*removed}, one)
		if len(got) != 1 || got[0].After.Spec.DesiredState != v1alpha1.DesiredStateNode {
			t.Errorf("changes are %+v", got)
		}
	})
	t.Run("a pause by a user outlives a change of the entry", func(t *testing.T) {
		paused := *one[0].DeepCopy()
		paused.Spec.Paused = true
		got := diffInstances([]v1alpha1.WindowsInstance{paused}, listed(map[string]string{"10.0.0.1": "username=b"}))
		if len(got) != 1 || !got[0].After.Spec.Paused || got[0].After.Spec.Username != "b" {
			t.Errorf("changes are %+v", got)
		}
	})
	t.Run("an instance without a user name has the fault of its entry", func(t *testing.T) {
		const key = "10.0.0.1"
		var present []v1alpha1.WindowsInstance
		fault := func() string { return present[0].Annotations[v1alpha1.AnnotationEntryFault] }
		write := func(value string) {
			t.Helper()
			got := diffInstances(present, listed(map[string]string{key: value}))
			if len(got) != 1 {
				t.Fatalf("%q makes the changes %+v", value, got)
			}
			present = []v1alpha1.WindowsInstance{*got[0].After}
			if again := diffInstances(present, listed(map[string]string{key: value})); len(again) > 0 {
				t.Errorf("%q is written again: %+v", value, again)
			}
		}
		write("user=a")
		if !strings.Contains(fault(), "must be username=<user>") {
			t.Errorf("the fault is %q", fault())
		}
		write("username=a:b")
		if !strings.Contains(fault(), "does not allow") {
			t.Errorf("another fault of the entry is %q", fault())
		}
		if write("username=a"); fault() != "" {
			t.Errorf("a valid entry has the fault %q", fault())
		}
		if got := diffInstances(present, listed(map[string]string{key: "user=a"})); len(got) > 0 {
			t.Errorf("a host whose user name is known is changed by a faulty entry: %+v", got)
		}
	})
	t.Run("an instance of a Machine is not this source's, whatever its label says", func(t *testing.T) {
		other := *one[0].DeepCopy()
		other.Spec.Source = v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: other.Name}}
		if got := diffInstances([]v1alpha1.WindowsInstance{other}, nil); len(got) != 0 {
			t.Errorf("changes are %+v", got)
		}
	})
}
