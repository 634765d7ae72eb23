package byoh

import "testing"

func TestDiffInstances_FaultyEntryChangesNoInstance(t *testing.T) {
	present, _ := desiredInstances("wmco", map[string]string{"10.0.0.1": "username=a"})
	slipped, faults := desiredInstances("wmco", map[string]string{"10.0.0.1": "user=a"})
	if len(faults) != 1 {
		t.Fatalf("the faults are %+v", faults)
	}
	if got := diffInstances(present, slipped); len(got) != 0 {
		t.Errorf("the instance is changed: %+v", got[0].After.Spec)
	}
}
