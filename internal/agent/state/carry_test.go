package state

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func mustEncode(t interface{ Fatal(...any) }, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustDecode(t interface{ Fatal(...any) }, data []byte) any {
	value, err := decodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func someLedger() plan.Ledger {
	proxy := "http://own:1"
	return plan.Ledger{
		HostName: "WIN-OLD", Environment: map[string]*string{"A": nil, "B": &proxy},
		Services:   map[string]*host.Service{"kubelet": nil},
		Paths:      map[string]plan.PathBefore{`C:\k`: {Existed: true, Directory: true}, `C:\k\f`: {}},
		Exclusions: []host.Exclusion{{Kind: host.ExcludeProcess, Value: "a"}, {Kind: host.ExcludeProcess, Value: "b"}},
		Networks:   []string{"n"}, Routes: map[string]bool{"r": false},
	}
}

// ledgerObjects returns the objects of a ledger with fields of this release, rather than names, as keys.
func ledgerObjects(document map[string]any) []map[string]any {
	list := []map[string]any{document}
	for _, name := range []string{`C:\k`, `C:\k\f`} {
		if path, exists := document["paths"].(map[string]any)[name].(map[string]any); exists {
			list = append(list, path)
		}
	}
	for _, each := range document["exclusions"].([]any) {
		list = append(list, each.(map[string]any))
	}
	return list
}

// Fields added to the ledger by a later agent survive a write by this agent.
func TestMergeUnknown_KeepsUnknownFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		present := mustDecode(t, mustEncode(t, someLedger())).(map[string]any)
		known := mustDecode(t, mustEncode(t, someLedger()))
		added := 0
		for _, object := range ledgerObjects(present) {
			for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching("x[a-z]{1,6}"), 0, 3, rapid.ID[string]).Draw(t, "names") {
				object[name] = rapid.SampledFrom([]any{true, "text", json.Number("12"), []any{"a"}, map[string]any{"b": nil}}).Draw(t, "value")
				added++
			}
		}
		data, err := mergeUnknown(mustEncode(t, present), mustEncode(t, someLedger()))
		if err != nil || !reflect.DeepEqual(mustDecode(t, data), any(present)) {
			t.Fatalf("%v\n%s\n%s", err, data, mustEncode(t, present))
		}
		names, err := unknownFields(data)
		if err != nil || len(names) != added {
			t.Fatalf("%d were added, named are %v (%v)", added, names, err)
		}
		if added == 0 && !reflect.DeepEqual(mustDecode(t, data), known) {
			t.Fatal("it has become another")
		}
	})
}

func TestMergeUnknown_DropsFieldsOfRemovedEntry(t *testing.T) {
	present := mustDecode(t, mustEncode(t, someLedger())).(map[string]any)
	for _, object := range ledgerObjects(present)[1:] {
		object["owner"] = "later"
	}
	next := someLedger()
	delete(next.Paths, `C:\k\f`)
	next.Exclusions = slices.Insert(next.Exclusions[1:], 0, host.Exclusion{Kind: host.ExcludeProcess, Value: "c"})
	data, err := mergeUnknown(mustEncode(t, present), mustEncode(t, next))
	if err != nil {
		t.Fatal(err)
	}
	names, err := unknownFields(data)
	if want := []string{"exclusions[1].owner", `paths.C:\k.owner`}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v (%v)", names, err)
	}
	if strings.Contains(string(data), `C:\\k\\f`) {
		t.Error("the entry that was restored is back")
	}
}

func TestMergeUnknown_ClearedFieldsStayCleared(t *testing.T) {
	present := someLedger()
	present.Refusal, present.Removing = &plan.Refusal{Reason: "refused"}, true
	data, err := mergeUnknown(mustEncode(t, present), mustEncode(t, someLedger()))
	if err != nil || !reflect.DeepEqual(mustDecode(t, data), mustDecode(t, mustEncode(t, someLedger()))) {
		t.Errorf("%v %s", err, data)
	}
}

// A file written by another release or a damaged file causes an error or a valid ledger, never a crash.
func FuzzTheLedgerOfAnotherRelease(f *testing.F) {
	f.Add(mustEncode(f, someLedger()))
	for _, text := range []string{"", "{}", "null", "[]", `{"paths":{"C:\\k":null}}`, `{"later":{"a":[1,{}]}}`, `{"exclusions":[{"kind":1}]}`, `{"paths":`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, present []byte) {
		data, err := mergeUnknown(present, mustEncode(t, someLedger()))
		if err != nil {
			return
		}
		var ledger plan.Ledger
		if err := json.Unmarshal(data, &ledger); err != nil {
			t.Fatalf("of %q it makes what is no ledger: %v", present, err)
		}
		if _, err := unknownFields(data); err != nil {
			t.Fatalf("it cannot read what it has written: %v", err)
		}
		_ = decodeApplied(present)
	})
}
