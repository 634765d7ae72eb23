package plan_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// The operator plans with facts from a host that an attacker may control.
func FuzzFactsOfAHost(f *testing.F) {
	adopted := newModel()
	adopted.Networks = []host.HNSNetwork{{Name: "OVN", Type: "l2bridge"}}
	adopted.Services["kubelet"] = host.Service{}
	for _, facts := range []plan.Facts{{}, newModel().Facts, adopted.Facts} {
		text, err := json.Marshal(facts)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{`{"services":{"kubelet":null}}`, `{"files":{"":{}}}`, `{"ledger":{"paths":{"C:":null}}}`, `{"networks":[null]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var facts, same plan.Facts
		if json.Unmarshal(text, &facts) != nil || json.Unmarshal(text, &same) != nil {
			return
		}
		for _, spec := range []nodespec.NodeSpec{smallSpec(), {}} {
			if first, second := plan.Make(facts, spec), plan.Make(same, spec); !reflect.DeepEqual(first, second) {
				t.Errorf("of %q it makes two plans:\n%v\n%v", text, first, second)
			}
		}
	})
}
