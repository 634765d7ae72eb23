package replacement

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	oldKey, newKey         = "old", "new"
	oldVersion, newVersion = "11.0.0-abc1234", "12.0.0"
)

// fleetOf returns a MachineSet "set" with running Machines. Their Nodes work with the old key, and the hosts have
// refused the new key.
func fleetOf(names ...string) Fleet {
	fleet := Fleet{Sets: []MachineSet{{Name: "set", Replicas: len(names), Machines: len(names)}}}
	for _, name := range names {
		fleet.Machines = append(fleet.Machines, Machine{Name: name, Phase: "Running", Set: "set",
			Node: "node-" + name, Refused: true})
		fleet.Nodes = append(fleet.Nodes, Node{Name: "node-" + name, KeyHash: oldKey, Ready: true})
	}
	return fleet
}

// newOutdatedFleet returns such a MachineSet with the current key on the hosts, which another version configured and
// which must be replaced for this reason.
func newOutdatedFleet(names ...string) Fleet {
	fleet := fleetOf(names...)
	for i := range names {
		fleet.Machines[i].Refused, fleet.Machines[i].NeedsReplacement = false, true
		fleet.Nodes[i].KeyHash, fleet.Nodes[i].Version = newKey, oldVersion
	}
	return fleet
}

func newKeyRotation() KeyChange { return KeyChange{Current: newKey, UserData: true} }

//
func TestNextReplacements(t *testing.T) {
	for name, test := range map[string]struct {
		fleet  Fleet
		change func(f *Fleet, k *KeyChange)
		want   string // the candidates, by priority
		waits  string // the failed check of the first waiting Machine
		left   string // a Machine that is not replaced
	}{
		"all, by name": {fleet: fleetOf("b", "a", "c"), want: "a b c"},
		"the only one of its set, for nobody else could do it without a gap": {fleet: fleetOf("a"), want: "a"},
		"none when all have the key":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].KeyHash = newKey }},
		"none that was never configured: its user data may be at work":       {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].KeyHash = "" }},
		"none that has no Node yet":                                          {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Node = "" }},
		"none that is ignored":                                               {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Ignored = true }},
		"none that goes anyway":                                              {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Deleting = true }},
		"none in phase Deleting":                                             {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Phase = "Deleting" }},
		"none whose set goes anyway":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Deleting = true }},
		"none that nobody would make again":                                  {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Set = "" }, left: "a"},
		"none whose set is gone":                                             {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets = nil }, left: "a"},
		"none whose key comes from elsewhere":                                {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].ExternalKey = true }, left: "a"},
		"another one while one is paused":                                    {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Paused = true }, want: "b", left: "a"},
		"none before new Machines would accept the key":                      {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.UserData = false }, waits: "UserDataOutdated"},
		"none that does not run yet":                                         {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Phase = "Provisioned" }, waits: "MachineNotRunning"},
		"none whose Node is being changed": {fleet: fleetOf("a", "b"), change: func(f *Fleet, k *KeyChange) {
			f.Nodes[0].Changing, f.Machines[0].Refused, k.Known = true, false, InPlaceTimeout
		}, want: "b", waits: "NodeChanging"},
		"one whose change has ended with a refusal of the key":       {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Changing = true }, want: "a"},
		"one whose change in place has made way for its replacement": {fleet: newOutdatedFleet("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Changing = true }, want: "a"},
		"none while its set is made smaller":                         {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Sets[0].Replicas-- }, waits: "SurplusMachines"},
		"first the one whose Node does not work":                     {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[1].Ready = false }, want: "b a"},
		"first the one with a slot, whose replacement an operator has not completed": {fleet: fleetOf("a", "b", "c"), change: func(f *Fleet, _ *KeyChange) {
			f.Nodes[1].Ready, f.Machines[2].HasSlot = false, true
		}, want: "c b a"},
		"none while another of the set has failed: the next may fail as well": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Nodes[1].Ready = "Failed", false
		}, waits: "MachineFailed"},
		"none while one of the set has failed that was to take the place of another": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Machines[1].Node, f.Nodes = "Failed", "", f.Nodes[:1]
		}, waits: "MachineFailed"},
		"those of other sets than the one of which a Machine has failed": {fleet: fleetOf("a", "b", "c"), change: func(f *Fleet, _ *KeyChange) {
			f.Sets = []MachineSet{{Name: "set", Replicas: 2, Machines: 2}, {Name: "other", Replicas: 1, Machines: 1}}
			f.Machines[0].Phase, f.Machines[2].Set = "Failed", "other"
		}, want: "c", waits: "MachineFailed"},
		"one while another has failed, which is ignored": {fleet: fleetOf("a", "b"), change: func(f *Fleet, _ *KeyChange) {
			f.Machines[1].Phase, f.Machines[1].Ignored = "Failed", true
		}, want: "a"},
		"none in the first minutes that was not tried with the key": {fleet: fleetOf("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Refused = false }, waits: "InPlaceChangePending"},
		"one that could not be tried for long": {fleet: fleetOf("a"), change: func(f *Fleet, k *KeyChange) {
			f.Machines[0].Refused, k.Known = false, InPlaceTimeout
		}, want: "a"},
		"none in the first minutes that can be given the key by the previous one": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.Previous = oldKey }, waits: "InPlaceChangePending"},
		"one that could not be given it for long": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) {
			k.Previous, k.Known = oldKey, InPlaceTimeout
		}, want: "a"},
		"one for which the previous key is not the one": {fleet: fleetOf("a"), change: func(_ *Fleet, k *KeyChange) { k.Previous = "another" }, want: "a"},
		"one that need not wait, when another must": {fleet: fleetOf("a", "b"), change: func(f *Fleet, k *KeyChange) {
			k.Previous, f.Nodes[1].KeyHash = oldKey, "older"
		}, want: "b", waits: "InPlaceChangePending"},

		"one of another version that is to be replaced for it": {fleet: newOutdatedFleet("a", "b"), want: "a b"},
		"none of this version":                                 {fleet: newOutdatedFleet("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Version = newVersion }},
		"none of which only the annotation is to change":       {fleet: newOutdatedFleet("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].NeedsReplacement = false }},
		"none that no version has configured to its end":       {fleet: newOutdatedFleet("a"), change: func(f *Fleet, _ *KeyChange) { f.Nodes[0].Version = "" }},
		"none of another version that nobody would make again": {fleet: newOutdatedFleet("a"), change: func(f *Fleet, _ *KeyChange) { f.Machines[0].Set = "" }},
		"one of another version whose key comes from elsewhere, as its host accepts the present one": {fleet: newOutdatedFleet("a"), change: func(f *Fleet, k *KeyChange) {
			f.Sets[0].ExternalKey, k.UserData = true, false
		}, want: "a"},
		"none of another version whose key comes from elsewhere, and is another": {fleet: newOutdatedFleet("a"), change: func(f *Fleet, _ *KeyChange) {
			f.Sets[0].ExternalKey, f.Nodes[0].KeyHash = true, oldKey
		}, left: "a"},
		"none of another version that would be followed by one without the key": {fleet: newOutdatedFleet("a"), change: func(_ *Fleet, k *KeyChange) { k.UserData = false }, waits: "UserDataOutdated"},
		"one of another version at once, though its host might be given the key": {fleet: newOutdatedFleet("a"), change: func(f *Fleet, k *KeyChange) {
			k.Previous, f.Nodes[0].KeyHash = oldKey, oldKey
		}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKeyRotation()
			if test.change != nil {
				test.change(&test.fleet, &key)
			}
			got := Next(test.fleet, newVersion, key)
			var may []string
			for _, candidate := range got.Candidates {
				may = append(may, candidate.Machine)
				if candidate.Set == "" || candidate.Cause == "" {
					t.Errorf("candidate %+v", candidate)
				}
			}
			if !slices.Equal(may, strings.Fields(test.want)) {
				t.Errorf("%v may go, want %s", may, test.want)
			}
			if (test.waits == "") != (len(got.Waiting) == 0) || test.waits != "" && got.Waiting[0].Check != test.waits {
				t.Errorf("waiting are %+v, want %s", got.Waiting, test.waits)
			}
			for _, waiting := range got.Waiting {
				if waiting.Message == "" || strings.Contains(waiting.Message, "%!") {
					t.Errorf("%+v", waiting)
				}
			}
			if test.left != "" && got.NotReplaced[test.left] == "" || test.left == "" && len(got.NotReplaced) > 0 {
				t.Errorf("left are %v", got.NotReplaced)
			}
		})
	}
	t.Run("one with another key and another version is replaced once, for its version", func(t *testing.T) {
		fleet := newOutdatedFleet("a", "b")
		fleet.Nodes[0].KeyHash, fleet.Nodes[1].KeyHash, fleet.Machines[1].NeedsReplacement = oldKey, oldKey, false
		fleet.Machines[1].Refused = true
		got := Next(fleet, newVersion, newKeyRotation()).Candidates
		want := []Candidate{{"a", "set", v1alpha1.CauseUpgrade}, {"b", "set", v1alpha1.CauseKeyChange}}
		if !slices.Equal(got, want) {
			t.Errorf("candidates are %+v", got)
		}
	})
	t.Run("one that waits for another of its set to be gone says which", func(t *testing.T) {
		fleet := fleetOf("a", "b")
		fleet.Machines[0].Deleting, fleet.Sets[0].Replicas = true, 1
		got := Next(fleet, newVersion, newKeyRotation()).Waiting
		if len(got) != 1 || got[0].Machine != "b" || !strings.Contains(got[0].Message, "Machine a is still being deleted") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("an operator that does not know its version replaces none for it", func(t *testing.T) {
		if got := Next(newOutdatedFleet("a"), "", newKeyRotation()); len(got.Candidates)+len(got.Waiting)+len(got.NotReplaced) > 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestNext_FailedMachineNotReplaced(t *testing.T) {
	fleet := fleetOf("a")
	fleet.Machines[0].Phase = "Failed"
	if got := Next(fleet, newVersion, newKeyRotation()); len(got.Candidates)+len(got.Waiting)+len(got.NotReplaced) > 0 {
		t.Errorf("got %+v", got)
	}
}
