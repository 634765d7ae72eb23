package robustness

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var anyShape = Shape{Hosts: []string{"a", "b", "c"}, Listed: 2, Named: []string{"b"}, Machines: 1, Releases: 3, Actions: 40}

func TestGenerate_SameSeedGivesSameActions(t *testing.T) {
	for seed := range uint64(20) {
		first, second := Generate(seed, anyShape).Actions, Generate(seed, anyShape).Actions
		if !slices.Equal(first, second) {
			t.Fatalf("seed %d makes different actions", seed)
		}
		if len(first) != anyShape.Actions {
			t.Errorf("seed %d makes %d actions", seed, len(first))
		}
	}
	if slices.Equal(Generate(1, anyShape).Actions, Generate(2, anyShape).Actions) {
		t.Error("two seeds make the same")
	}
}

func TestGenerate_ActionsAreConsistent(t *testing.T) {
	seen := map[Kind]bool{}
	for seed := range uint64(200) {
		m := NewModel(anyShape)
		for _, a := range Generate(seed, anyShape).Actions {
			seen[a.Kind] = true
			switch {
			case a.Kind == ListHost && m.Listed[a.Host]:
				t.Errorf("seed %d lists %s twice", seed, a.Host)
			case a.Kind == UnlistHost && !m.Listed[a.Host]:
				t.Errorf("seed %d takes away %s, which is not listed", seed, a.Host)
			case a.Kind == MoveHost && !slices.Contains(anyShape.Named, a.Host):
				t.Errorf("seed %d moves %s, which is listed by its address", seed, a.Host)
			case a.Kind == Release && a.Number >= anyShape.Releases:
				t.Errorf("seed %d has release %d", seed, a.Number)
			case a.Kind == RotateKey && m.Rotated:
				t.Errorf("seed %d changes the key twice: hosts that are not listed know the first one only", seed)
			}
			m.Apply(a)
		}
	}
	for k := range kinds {
		if !seen[k] {
			t.Errorf("no seed has %s", k)
		}
		if !slices.Contains(order, k) {
			t.Errorf("%s has no place in the order", k)
		}
	}
}

// A change of a host by the cluster's settings, a restart, and pods that cannot be evicted interact most.
func TestGenerate_KeptPodsMeetSettingAndReboot(t *testing.T) {
	count, met := 0, 0
	for seed := range uint64(200) {
		actions := Generate(seed, anyShape).Actions
		for i, a := range actions {
			if a.Kind != KeepPods || i+2 >= len(actions) {
				continue
			}
			count++
			if next := []Kind{actions[i+1].Kind, actions[i+2].Kind}; slices.Contains(next, Setting) && slices.Contains(next, Reboot) {
				met++
			}
		}
	}
	if met*3 < count {
		t.Errorf("%d of %d times", met, count)
	}
}

func TestParse_ReadsWrittenScript(t *testing.T) {
	want := Generate(7, anyShape)
	got, err := Parse(strings.NewReader("\n" + want.String()))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	const shape = `{"hosts":["a"],"listed":1,"releases":1}` + "\n"
	if _, err := Parse(strings.NewReader(shape + `{"kind":"reboot","host":"a"}`)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{
		"", `{"kind":"reboot","host":"a"}`, `{"hosts":["a"],"listed":2,"releases":1}`, `{"hosts":["a"],"listed":1}`,
		`{"hosts":["a"],"listed":1,"releases":1,"named":["b"]}`, `{"hosts":["a"],"listed":1,"releases":1,"impostor":"b"}`,
		shape + "x", shape + `{"kind":"dance"}`, shape + `{"kind":"reboot","hots":"a"}`, shape + `{"kind":"reboot","host":"b"}`,
	} {
		if _, err := Parse(strings.NewReader(wrong)); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}

func TestShrink_KeepsActionsThatCauseFailure(t *testing.T) {
	actions := Generate(3, anyShape).Actions
	needs := func(required ...Action) func([]Action) bool {
		return func(some []Action) bool {
			return !slices.ContainsFunc(required, func(a Action) bool { return !slices.Contains(some, a) })
		}
	}
	t.Run("one action is found", func(t *testing.T) {
		if got := Shrink(actions, 100, needs(actions[17])); !slices.Equal(got, actions[17:18]) {
			t.Errorf("it left %v", got)
		}
	})
	t.Run("two that are far apart stay in their order", func(t *testing.T) {
		if got := Shrink(actions, 200, needs(actions[30], actions[2])); !slices.Equal(got, []Action{actions[2], actions[30]}) {
			t.Errorf("it left %v", got)
		}
	})
	t.Run("it stops when it has tried enough, with a list that fails", func(t *testing.T) {
		tried := 0
		got := Shrink(actions, 5, func(some []Action) bool {
			tried++
			return needs(actions[30], actions[2])(some)
		})
		if tried > 5 || !needs(actions[30], actions[2])(got) {
			t.Errorf("after %d attempts it left %v", tried, got)
		}
	})
	t.Run("what does not fail again stays as it is", func(t *testing.T) {
		if got := Shrink(actions, 1000, func([]Action) bool { return false }); !slices.Equal(got, actions) {
			t.Errorf("it left %v", got)
		}
	})
}

func TestReport_SameViolationRequiresSameRule(t *testing.T) {
	broke := func(sentences ...string) (r Report) {
		for _, sentence := range sentences {
			r.Violations = append(r.Violations, Violation{Rule: sentence})
		}
		return r
	}
	if !broke("b", "c").HasSameViolation(broke("a", "b")) {
		t.Error("b was broken again")
	}
	if broke("c").HasSameViolation(broke("a", "b")) || broke().HasSameViolation(broke("a")) {
		t.Error("another bug counts as the first one")
	}
}
