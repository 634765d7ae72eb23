// Package headers contains values of Windows headers as test data: constants, sizes and offsets of structures,
// numbers of parameters, and vtable indices. Tests compare the agent's source and the headers of mingw-w64 with
// these values. README.md names the sources.
package headers

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fact is a row of a file.
type Fact struct {
	Kind   string // const, struct, func, vtable, guid
	Name   string
	Value  string // as in the file, without quotes
	Symbol string // the C expression of a constant
	Header string

	Number     *uint64 // the value of a constant that is a number
	Size       *uint64 // the size of a structure
	Offsets    []uint64
	Partial    bool    // the row has only some of the fields
	Parameters *uint64 // of a function, or of a method without the interface itself
	Index      *uint64 // of a method in its vtable
}

// partial are structures with only some fields in the rows: the headers do not publish the remaining fields.
var partial = map[string]bool{"PEB": true, "PROCESS_BASIC_INFORMATION": true, "SYSTEM_TIMEOFDAY_INFORMATION": true,
	"UNICODE_STRING": true}

// fromSDK contains the values of Microsoft's SDK; further contains values that the SDK lacks.
var (
	//go:embed sdk.tsv
	fromSDK string
	//go:embed further.tsv
	further string
)

// Facts returns the rows of both files.
func Facts() ([]Fact, error) {
	var facts []Fact
	seen := map[string]bool{}
	for line := range strings.Lines(fromSDK + further) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"), fields[0] == "kind":
			continue
		case len(fields) != 4:
			return nil, fmt.Errorf("%q has not four columns", line)
		}
		fact := parseFact(fields)
		if !seen[fact.Kind+fact.Name] { // sdk.tsv has some functions twice
			facts = append(facts, fact)
		}
		seen[fact.Kind+fact.Name] = true
	}
	return facts, nil
}

var (
	// A constant may be preceded by the header's name for the number, and followed by a remark.
	numberForm     = regexp.MustCompile(`^(?:([A-Z]\w+) )?(0x[0-9a-f]+|\d+)(?: \(.*)?$`)
	sizeForm       = regexp.MustCompile(`^size (\d+)`)
	offsetsForm    = regexp.MustCompile(`offsets? \[?(\d+(?:, \d+)*)`)
	parametersForm = regexp.MustCompile(`(\d+) parameters`)
	indexForm      = regexp.MustCompile(`^index (\d+)`)
)

func parseFact(fields []string) Fact {
	f := Fact{Kind: fields[0], Name: fields[1], Value: fields[2], Symbol: fields[1], Header: fields[3]}
	if code, ok := strings.CutPrefix(f.Name, "HRESULT of "); ok {
		f.Symbol = "HRESULT_FROM_WIN32(" + code + ")"
	}
	switch f.Kind {
	case "const":
		if found := numberForm.FindStringSubmatch(f.Value); found != nil {
			f.Number = parseNumber(found[2])
			if found[1] != "" {
				f.Symbol = found[1]
			}
		} else if character, ok := strings.CutPrefix(f.Value, "'"); ok {
			f.Value = strings.TrimSuffix(character, "'")
		}
	case "struct":
		f.Size, f.Partial = findNumber(sizeForm, f.Value), partial[f.Name]
		if found := offsetsForm.FindStringSubmatch(f.Value); found != nil {
			for text := range strings.SplitSeq(found[1], ", ") {
				f.Offsets = append(f.Offsets, *parseNumber(text))
			}
		}
	case "func", "vtable":
		f.Parameters, f.Index = findNumber(parametersForm, f.Value), findNumber(indexForm, f.Value)
	}
	return f
}

// HasOffsets reports whether the fields of a structure have the offsets of the row.
func (f Fact) HasOffsets(offsets []uint64) bool {
	if f.Partial {
		return !slices.ContainsFunc(f.Offsets, func(each uint64) bool { return !slices.Contains(offsets, each) })
	}
	return f.Offsets == nil || slices.Equal(f.Offsets, offsets)
}

func findNumber(form *regexp.Regexp, text string) *uint64 {
	found := form.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	return parseNumber(found[1])
}

func parseNumber(digits string) *uint64 {
	number, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return nil
	}
	return &number
}
