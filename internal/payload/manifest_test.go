package payload

import (
	"encoding/json"
	"strings"
	"testing"
)

func validManifest() Manifest {
	return Manifest{Schema: SchemaVersion, Version: "v10.0.0", Components: []Component{
		{Name: "wicd", Version: "v10.0.0", Source: "here", Required: true,
			Files: []File{{Path: "wicd.exe", Size: 1, SHA256: strings.Repeat("a", 64)}}},
		{Name: "cni", Version: "v1", Source: "there",
			Files: []File{{Path: `bin\win-overlay.exe`, Size: 2, SHA256: strings.Repeat("b", 64)}}},
	}}
}

func TestManifestValidate(t *testing.T) {
	if err := validManifest().Validate(); err != nil {
		t.Fatalf("a valid manifest: %v", err)
	}
	tests := map[string]struct {
		change func(*Manifest)
		want   string
	}{
		"another schema version": {func(m *Manifest) { m.Schema = 2 }, "schema version is 2"},
		"the version is missing": {func(m *Manifest) { m.Version = "" }, "the version is missing"},
		"an odd window":          {func(m *Manifest) { m.WindowBytes = 3 << 20 }, "not a power of two"},
		"a huge window":          {func(m *Manifest) { m.WindowBytes = 1 << 40 }, "not a power of two"},
		"a component twice": {func(m *Manifest) {
			m.Components[1].Name = "wicd"
		}, `component "wicd" is listed twice`},
		"a component name with path":  {func(m *Manifest) { m.Components[1].Name = `..\x` }, "the name must consist of"},
		"a component without version": {func(m *Manifest) { m.Components[1].Version = "" }, "version or source"},
		"a component without files":   {func(m *Manifest) { m.Components[1].Files = nil }, "the component has no files"},
		"an empty platform": {func(m *Manifest) {
			m.Components[1].Platforms = []string{""}
		}, "a platform is empty"},
		"an agent of another name": {func(m *Manifest) {
			m.Components[0].Files[0].Path = "agent.exe"
		}, "must contain only wicd.exe"},
		"a digest in capitals": {func(m *Manifest) {
			m.Components[1].Files[0].SHA256 = strings.Repeat("B", 64)
		}, "not a digest"},
		"a negative size": {func(m *Manifest) { m.Components[1].Files[0].Size = -1 }, "size -1"},
		"one content of two sizes": {func(m *Manifest) {
			m.Components[1].Files[0].SHA256 = strings.Repeat("a", 64)
		}, "two sizes"},
		"a file twice but for its case": {func(m *Manifest) {
			f := m.Components[1].Files[0]
			f.Path = strings.ToUpper(f.Path)
			m.Components[1].Files = append(m.Components[1].Files, f)
		}, "is listed twice"},
		"a path out of its folder": {func(m *Manifest) {
			m.Components[1].Files[0].Path = `..\evil.exe`
		}, "contains a part . or .."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := validManifest()
			test.change(&m)
			data, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ParseManifest(data); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestValidatePath(t *testing.T) {
	for _, path := range []string{"kubelet.exe", `bin\a b.exe`, `a\b\c.d.e`, "console.exe", "com10",
		"COM", ".hidden", "..x"} {
		if err := validatePath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", `\a`, `C:\a`, "C:a", "a/b", `a\\b`, `a\`, `..`, `a\..\b`, `.\a`, `\\server\share`, "a.", "a ", "nul", "NUL.txt",
		"nul .txt", `x\con`,
		"Com1.exe", "lpt9", "conin$", "a\x00b", "a\nb", "a*", "a?", `a"b`, "a|b", "a<b", "ä.exe", "a:stream",
		strings.Repeat("x", 181),
	} {
		if err := validatePath(path); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	data, err := json.Marshal(validManifest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":1,"version":"x","components":[{"name":"a","files":[{"path":"..\\..\\x"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		for _, c := range m.Components {
			for _, file := range c.Files {
				if strings.Contains(file.Path, `..\`) || strings.HasPrefix(file.Path, `\`) ||
					strings.ContainsAny(file.Path, "/:\x00") {
					t.Errorf("path %q was accepted", file.Path)
				}
			}
		}
	})
}
