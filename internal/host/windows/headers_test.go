//go:build !windows

package windows

import (
	"fmt"
	"go/constant"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine/headers"
)

// Values, layouts and argument counts in the program must match Windows' headers. headers_names_test.go contains the
// names of both, and the reason for each value without a row.
func TestHeaders_ProgramValuesMatchWindows(t *testing.T) {
	c := comparison{t, factsByName(t), map[string]bool{}}
	p := readProgram(t)
	c.compareConstants(p)
	c.compareStructures(p)
	c.compareMethods(p)
	c.compareCalls(p)
	for _, list := range []map[string]string{constantsOfWindows, structuresOfWindows, withoutRow} {
		for name := range list {
			if !c.listed[name] {
				t.Errorf("headers_names_test.go lists %s, which the program no longer uses, or which has a row now", name)
			}
		}
	}
}

// SDDL encodes rights as pairs of letters.
func TestHeaders_DescriptorRightsMatchWindows(t *testing.T) {
	facts := factsByName(t)
	rights := map[string]headers.Fact{}
	for name, fact := range facts {
		if letters, ok := strings.CutPrefix(name, "const SDDL right "); ok {
			rights[letters] = fact
		}
	}
	for letters, right := range map[string]string{"SDDL_FILE_ALL": "FILE_ALL_ACCESS", "SDDL_FILE_READ": "FILE_GENERIC_READ",
		"SDDL_FILE_WRITE": "FILE_GENERIC_WRITE", "SDDL_FILE_EXECUTE": "FILE_GENERIC_EXECUTE", "SDDL_READ_CONTROL": "READ_CONTROL"} {
		rights[facts["const "+letters].Value] = facts["const "+right]
	}
	if len(rights) != 14 {
		t.Fatalf("sdk.tsv has %d rights: want 14", len(rights))
	}
	for letters, want := range rights {
		if got := rightOf(letters); uint64(got) != *want.Number {
			t.Errorf("right %s is %#x: want %s of %s", letters, got, want.Value, want.Header)
		}
	}
}

func factsByName(t *testing.T) map[string]headers.Fact {
	t.Helper()
	rows, err := headers.Facts()
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]headers.Fact{}
	for _, fact := range rows {
		facts[fact.Kind+" "+fact.Name] = fact
	}
	return facts
}

// comparison compares the program with the rows and records the used names of the lists.
type comparison struct {
	*testing.T
	facts  map[string]headers.Fact
	listed map[string]bool
}

// findFact returns the row for a name of the program: under its listed name, otherwise under the same name without the
// package. A missing row is an error unless the list contains a reason.
func (c comparison) findFact(kind, name string, list map[string]string) (headers.Fact, bool) {
	header, ok := list[name]
	if !ok {
		header = name[strings.LastIndex(name, ".")+1:]
	}
	c.listed[name] = ok
	if fact, ok := c.facts[kind+" "+header]; ok {
		return fact, true
	}
	if fact, ok := c.combineFlags(header); ok && kind == "const" {
		return fact, true
	}
	c.listed[name] = withoutRow[name] != ""
	if !c.listed[name] {
		c.Errorf("%s %s: no row has %s: list the name that Windows' headers have for it, add a row to lab/wine/headers/further.tsv, or list the reason in withoutRow (headers_names_test.go)",
			kind, name, header)
	}
	return headers.Fact{}, false
}

// combineFlags returns a row for several flags.
func (c comparison) combineFlags(header string) (headers.Fact, bool) {
	combined := headers.Fact{Name: header, Number: new(uint64)}
	for part := range strings.SplitSeq(header, "|") {
		fact, ok := c.facts["const "+part]
		if !ok || fact.Number == nil {
			return headers.Fact{}, false
		}
		*combined.Number |= *fact.Number
		combined.Value, combined.Header = fmt.Sprintf("%#x", *combined.Number), fact.Header
	}
	return combined, true
}

func (c comparison) compareConstants(p program) {
	for _, name := range slices.Sorted(maps.Keys(p.constants)) {
		value := p.constants[name]
		if _, listed := constantsOfWindows[name]; !listed && value.Kind() == constant.String {
			continue // names, registry paths and similar texts
		}
		want, found := c.findFact("const", name, constantsOfWindows)
		text := want.Value
		got := strings.Trim(value.ExactString(), `"`)
		if want.Number != nil {
			text = fmt.Sprint(*want.Number)
		}
		if found && got != text {
			c.Errorf("constant %s is %s: %s is %s in %s", name, got, want.Name, text, want.Header)
		}
	}
}

func (c comparison) compareStructures(p program) {
	for _, name := range slices.Sorted(maps.Keys(p.layouts)) {
		if _, listed := structuresOfWindows[name]; !listed && !p.shared[name] {
			continue
		}
		want, found := c.findFact("struct", name, structuresOfWindows)
		got := p.layouts[name]
		for _, offset := range got.unnamed { // padding, or a reserved field of the header
			if slices.Contains(want.Offsets, offset) {
				got.offsets = append(got.offsets, offset)
			}
		}
		slices.Sort(got.offsets)
		same := want.Size != nil && *want.Size == got.size && want.HasOffsets(got.offsets)
		if firstFieldsOnly[name] {
			same = len(got.offsets) <= len(want.Offsets) && slices.Equal(got.offsets, want.Offsets[:len(got.offsets)])
		}
		if found && !same {
			c.Errorf("structure %s has size %d, offsets %d: %s has %s in %s", name, got.size, got.offsets, want.Name,
				want.Value, want.Header)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.offsets)) {
		structure, field := name[:strings.LastIndex(name, ".")], name[strings.LastIndex(name, "."):]
		header := structuresOfWindows[structure]
		if header == "" {
			header = structure[strings.LastIndex(structure, ".")+1:]
		}
		want, found := c.findFact("struct", name, map[string]string{name: header + field})
		if found && want.Offsets[0] != p.offsets[name] {
			c.Errorf("field %s has offset %d: want %s in %s", name, p.offsets[name], want.Value, want.Header)
		}
	}
}

// compareMethods compares the vtables of package ole that have rows.
func (c comparison) compareMethods(p program) {
	compared := 0
	for _, of := range slices.Sorted(maps.Keys(p.methods)) {
		for i, method := range p.methods[of] {
			want, found := c.facts["vtable "+of+"."+method]
			if found && *want.Index != uint64(i) {
				c.Errorf("method %s.%s has index %d: want %s in %s", of, method, i, want.Value, want.Header)
			}
			if found {
				compared++
			}
		}
	}
	if compared == 0 {
		c.Error("no vtable of package ole was compared")
	}
}

func (c comparison) compareCalls(p program) {
	for _, name := range slices.Sorted(maps.Keys(p.calls)) {
		if name == "" {
			c.Error("the program calls a function of Windows whose name is not constant: give the name to NewProc where the call is")
			continue
		}
		want, found := c.findFact("func", name, nil)
		if found && len(p.calls[name]) == 0 {
			c.Errorf("no call of %s was found", name)
		}
		for _, arguments := range p.calls[name] {
			if found && uint64(arguments) != *want.Parameters {
				c.Errorf("a call of %s has %d arguments: want %s in %s", name, arguments, want.Value, want.Header)
			}
		}
	}
}
