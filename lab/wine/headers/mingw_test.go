package headers

import (
	"bytes"
	"debug/dwarf"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

// notCompared lists rows of sdk.tsv that are not compared with the headers of mingw-w64, with the reason.
var notCompared = map[string]string{
	"const ERROR_DISK_QUOTA_EXCEEDED":                "mingw-w64 10.0.0 lacks it",
	"const HRESULT of ERROR_ELEVATION_REQUIRED":      "mingw-w64 10.0.0 lacks it",
	"const NET_IF_COMPARTMENT_ID_PRIMARY":            "mingw-w64 10.0.0 lacks it",
	"const SID S-1-5-32-544":                         "two numbers",
	"const SID of TrustedInstaller":                  "five numbers",
	"const SECURITY_SQOS_PRESENT|SECURITY_ANONYMOUS": "two numbers",
}

// The headers of mingw-w64 are written independently of Microsoft's. Both must agree in each value.
func TestHeaders_MingwAndMicrosoftValuesMatch(t *testing.T) {
	compiler, err := exec.LookPath(standin.Compiler)
	if err != nil {
		t.Skipf("SKIPPED: mingw-w64's headers are not compared: %v", standin.ErrNoCompiler)
	}
	facts, err := Facts()
	if err != nil {
		t.Fatal(err)
	}
	facts = slices.DeleteFunc(facts, func(f Fact) bool {
		return notCompared[f.Kind+" "+f.Name] != "" || strings.HasPrefix(f.Header, "golang.org/x/sys ")
	})
	file := filepath.Join(t.TempDir(), "facts.c")
	if err := os.WriteFile(file, writeSource(t, facts), 0o600); err != nil {
		t.Fatal(err)
	}
	object := strings.TrimSuffix(file, "c") + "o"
	command := exec.CommandContext(t.Context(), compiler, "-c", "-g", "-w", "-o", object, file)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: add what mingw-w64 lacks to notCompared\n%s", command, err, output)
	}
	c := openObject(t, object)
	for i, fact := range facts {
		if problem := c.compareFact(fact, variableName(i)); problem != "" {
			t.Errorf("%s %s is %q in %s: mingw-w64 has %s; one of both is wrong", fact.Kind, fact.Name, fact.Value, fact.Header, problem)
		}
	}
}

// prologue includes the headers of the rows.
const prologue = `#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0A00
#define NTDDI_VERSION 0x0A000010
#define CINTERFACE
#include <initguid.h>
#include <winsock2.h>
#include <ws2ipdef.h>
#include <windows.h>
#include <aclapi.h>
#include <computenetwork.h>
#include <dismapi.h>
#include <iads.h>
#include <iphlpapi.h>
#include <lm.h>
#include <netfw.h>
#include <netioapi.h>
#include <oaidl.h>
#include <objbase.h>
#include <oleauto.h>
#include <sddl.h>
#include <tlhelp32.h>
#include <wbemcli.h>
#include <wbemdisp.h>
#include <wincrypt.h>
#include <winsvc.h>
#include <winternl.h>
typedef WSADATA WSAData;
`

// writeSource writes a C file with a variable for each row: the value of a constant, a structure, a pointer to
// a function, or a vtable. The object file contains the values, and the debug information contains the types,
// so that no program has to run.
func writeSource(t *testing.T, facts []Fact) []byte {
	t.Helper()
	source := bytes.NewBufferString(prologue)
	for i, fact := range facts {
		name, _, _ := strings.Cut(fact.Name, ".")
		switch {
		case fact.Kind == "const" && fact.Number != nil:
			fmt.Fprintf(source, "const unsigned long long %s = (unsigned long long)(%s);\n", variableName(i), fact.Symbol)
		case fact.Kind == "const" && len(fact.Value) == 1 && !strings.HasPrefix(fact.Name, "SDDL"):
			fmt.Fprintf(source, "const char %s[] = {%s, 0};\n", variableName(i), fact.Symbol)
		case fact.Kind == "const":
			fmt.Fprintf(source, "const char %s[] = %s;\n", variableName(i), fact.Symbol)
		case fact.Kind == "struct":
			fmt.Fprintf(source, "%s %s;\n", name, variableName(i))
		case fact.Kind == "func":
			fmt.Fprintf(source, "__typeof__(%s) *%s;\n", name, variableName(i))
		case fact.Kind == "vtable":
			fmt.Fprintf(source, "%sVtbl %s;\n", name, variableName(i))
		case fact.Kind == "guid":
			fmt.Fprintf(source, "const GUID *%s = &%s;\n", variableName(i), name)
		default:
			t.Fatalf("%s is no kind of a row", fact.Kind)
		}
	}
	return source.Bytes()
}

func variableName(i int) string { return fmt.Sprintf("fact%d", i) }

// object is a compiled C file: the content and the types of its variables.
type object struct {
	content map[string][]byte
	types   map[string]dwarf.Type
}

func openObject(t *testing.T, path string) object {
	t.Helper()
	file, err := pe.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := object{map[string][]byte{}, map[string]dwarf.Type{}}
	for _, symbol := range file.Symbols {
		if symbol.SectionNumber < 1 {
			continue
		}
		data, err := file.Sections[symbol.SectionNumber-1].Data()
		if err == nil && int(symbol.Value) < len(data) {
			o.content[symbol.Name] = data[symbol.Value:]
		}
	}
	debug, err := file.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	for reader := debug.Reader(); ; {
		entry, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if entry == nil {
			return o
		}
		name, named := entry.Val(dwarf.AttrName).(string)
		offset, typed := entry.Val(dwarf.AttrType).(dwarf.Offset)
		if entry.Tag != dwarf.TagVariable || !named || !typed {
			continue
		}
		if o.types[name], err = debug.Type(offset); err != nil {
			t.Fatal(err)
		}
	}
}

// compareFact returns the value of mingw-w64 if it differs, otherwise an empty string.
func (o object) compareFact(f Fact, variable string) string {
	content := o.content[variable]
	switch f.Kind {
	case "const":
		if f.Number == nil {
			text, _, _ := bytes.Cut(content, []byte{0})
			return describeDifference(f.Value, string(text))
		}
		if len(content) < 8 {
			return "nothing"
		}
		// Windows error codes have 32 bits; some are negative numbers.
		if got := uint32(binary.LittleEndian.Uint64(content)); got != uint32(*f.Number) {
			return fmt.Sprintf("%#x", got)
		}
		return ""
	case "guid":
		return describeDifference(f.Value, formatGUID(o.content[f.Name]))
	case "struct":
		return o.compareStructure(f, variable)
	case "func":
		return describeDifference(*f.Parameters, countParameters(o.types[variable]))
	case "vtable":
		_, method, _ := strings.Cut(f.Name, ".")
		fields := flattenFields(o.types[variable], 0)
		i := slices.IndexFunc(fields, func(each *dwarf.StructField) bool { return each.Name == method })
		if i < 0 {
			return "no such method"
		}
		if f.Parameters != nil && *f.Parameters != countParameters(fields[i].Type)-1 {
			return fmt.Sprint(countParameters(fields[i].Type)-1, " parameters")
		}
		return describeDifference(*f.Index, uint64(fields[i].ByteOffset)/8)
	}
	return "no comparison for its kind"
}

// compareStructure compares a structure, or a single field.
func (o object) compareStructure(f Fact, variable string) string {
	var offsets []uint64
	_, field, one := strings.Cut(f.Name, ".")
	for _, each := range flattenFields(o.types[variable], 0) {
		if !one || each.Name == field {
			offsets = append(offsets, uint64(each.ByteOffset))
		}
	}
	slices.Sort(offsets)
	offsets = slices.Compact(offsets)
	if f.Size != nil && *f.Size != uint64(o.types[variable].Size()) {
		return fmt.Sprint("size ", o.types[variable].Size(), ", offsets ", offsets)
	}
	if !f.HasOffsets(offsets) {
		return fmt.Sprint("offsets ", offsets)
	}
	return ""
}

func describeDifference[T comparable](want, got T) string {
	if want == got {
		return ""
	}
	return fmt.Sprint(got)
}

// resolveTypedef returns the type behind type names.
func resolveTypedef(of dwarf.Type) dwarf.Type {
	for {
		name, ok := of.(*dwarf.TypedefType)
		if !ok {
			return of
		}
		of = name.Type
	}
}

// flattenFields returns the fields of a structure, including fields of nested anonymous structures and unions.
func flattenFields(of dwarf.Type, at int64) []*dwarf.StructField {
	structure, ok := resolveTypedef(of).(*dwarf.StructType)
	if !ok {
		return nil
	}
	var fields []*dwarf.StructField
	for _, field := range structure.Field {
		if _, nested := resolveTypedef(field.Type).(*dwarf.StructType); nested && field.Name == "" {
			fields = append(fields, flattenFields(field.Type, at+field.ByteOffset)...)
			continue
		}
		moved := *field
		moved.ByteOffset += at
		fields = append(fields, &moved)
	}
	return fields
}

// countParameters returns the number of parameters of the function behind a pointer type.
func countParameters(of dwarf.Type) uint64 {
	if pointer, ok := resolveTypedef(of).(*dwarf.PtrType); ok {
		if function, ok := resolveTypedef(pointer.Type).(*dwarf.FuncType); ok {
			return uint64(len(function.ParamType))
		}
	}
	return 0
}

func formatGUID(b []byte) string {
	if len(b) < 16 {
		return ""
	}
	return fmt.Sprintf("%08X-%04X-%04X-%X-%X", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]),
		binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}
