package standin

import (
	"bytes"
	"cmp"
	"debug/pe"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compileLibrary builds a small library that exports functions with these names.
func compileLibrary(t *testing.T, path string, alignment int, functions ...string) {
	t.Helper()
	compiler, err := exec.LookPath(Compiler)
	if err != nil {
		t.Skipf("SKIPPED: no library to patch can be made: %v", ErrNoCompiler)
	}
	var source strings.Builder
	for _, name := range functions {
		source.WriteString("__declspec(dllexport) int " + name + "(void) { return 1; }\n")
	}
	file := filepath.Join(t.TempDir(), "a.c")
	if err := os.WriteFile(file, []byte(source.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), compiler, "-shared", "-nostdlib",
		fmt.Sprintf("-Wl,--file-alignment,%d", alignment), "-e", "0", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

func TestPatchWine(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, WineLibraries)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, functions := range forwards {
		exported := []string{"Another", "ZwLast"}
		for _, function := range functions {
			exported = append(exported, cmp.Or(renamed[function], function))
		}
		compileLibrary(t, filepath.Join(dir, name), page, exported...)
	}
	if err := PatchWine(root); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kernel32.dll")
	once, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the functions lead to the library, and others do not", func(t *testing.T) {
		for _, name := range append([]string{"Another"}, forwards["kernel32.dll"]...) {
			target, forwarded := forwarderTarget(t, once, name)
			if name == "Another" == forwarded || forwarded && target != ntfsLibrary+"."+name {
				t.Errorf("%s leads to %q (forwarded: %v)", name, target, forwarded)
			}
		}
	})
	t.Run("functions that Wine lacks take the place of others, and names stay in order", func(t *testing.T) {
		content, err := os.ReadFile(filepath.Join(dir, "iphlpapi.dll"))
		if err != nil {
			t.Fatal(err)
		}
		for lacking, neighbor := range renamed {
			if target, _ := forwarderTarget(t, content, lacking); target != routesLibrary+"."+lacking {
				t.Errorf("%s leads to %q", lacking, target)
			}
			e, _, err := findExports(content)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := e.findSlot(neighbor); err == nil {
				t.Errorf("%s is there still", neighbor)
			}
		}
	})
	t.Run("a second time changes nothing", func(t *testing.T) {
		if err := PatchWine(root); err != nil {
			t.Fatal(err)
		}
		twice, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("it differs; error %v", err)
		}
	})
	t.Run("a library without the functions is refused", func(t *testing.T) {
		compileLibrary(t, path, page, "Another")
		if err := PatchWine(root); err == nil || !strings.Contains(err.Error(), "exports no") {
			t.Errorf("got error %v", err)
		}
	})
}

// forwarderTarget returns the target of an exported function if another library provides it.
func forwarderTarget(t *testing.T, content []byte, function string) (target string, forwarded bool) {
	t.Helper()
	e, _, err := findExports(content)
	if err != nil {
		t.Fatal(err)
	}
	_, slot, err := e.findSlot(function)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pe.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	directory := file.OptionalHeader.(*pe.OptionalHeader64).DataDirectory[0]
	address := uint32(content[slot]) | uint32(content[slot+1])<<8 | uint32(content[slot+
		2])<<16 | uint32(content[slot+3])<<24
	if address < directory.VirtualAddress || address >= directory.VirtualAddress+directory.Size {
		return "", false
	}
	text := content[address-e.rva+e.offset:]
	return string(text[:bytes.IndexByte(text, 0)]), true
}
