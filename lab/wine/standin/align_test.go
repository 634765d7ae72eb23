package standin

import (
	"bytes"
	"debug/pe"
	"os"
	"path/filepath"
	"testing"
)

func TestAlignSections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.dll")
	compileLibrary(t, path, 512, "One", "Two")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	aligned, err := alignSections(content)
	if err != nil {
		t.Fatal(err)
	}
	before, after := sectionsOf(t, content), sectionsOf(t, aligned)
	for i, section := range after {
		if section.Offset%page != 0 {
			t.Errorf("section %s begins at %d", section.Name, section.Offset)
		}
		want, errBefore := before[i].Data()
		got, errAfter := section.Data()
		if errBefore != nil || errAfter != nil || !bytes.HasPrefix(got, want) ||
			section.VirtualAddress != before[i].VirtualAddress {
			t.Errorf("section %s is another: %v, %v", section.Name, errBefore, errAfter)
		}
	}
	if _, err := alignSections([]byte("no program")); err == nil {
		t.Error("what is no program was aligned")
	}
}

func sectionsOf(t *testing.T, content []byte) []*pe.Section {
	t.Helper()
	file, err := pe.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return file.Sections
}
