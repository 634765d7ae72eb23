package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// randomContent returns incompressible content that is the same in every run.
func randomContent(seed uint64, size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func sumOf(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

func newSource(name string, required bool, files map[string][]byte, order ...string) Source {
	s := Source{Component: Component{Name: name, Version: "v1", Source: "example.org/" + name + "@v1", Required: required}}
	for _, path := range order {
		content := files[path]
		s.Files = append(s.Files, File{Path: path})
		s.Content = append(s.Content, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	}
	return s
}

var (
	kubelet = randomContent(1, 300_000)
	shared  = append(randomContent(2, 200_000), kubelet[:100_000]...)
	empty   []byte
	agent   = randomContent(3, 50_000)
	azure   = randomContent(4, 10_000)
)

func testBuild() Build {
	azureSource := newSource("azure-cloud-node-manager", false, map[string][]byte{"a.exe": azure}, "a.exe")
	azureSource.Platforms = []string{"Azure"}
	return Build{Version: "v10.0.0", Components: []Source{
		newSource("wicd", true, map[string][]byte{"wicd.exe": agent}, "wicd.exe"),
		newSource("kubelet", true, map[string][]byte{"kubelet.exe": kubelet}, "kubelet.exe"),
		newSource("cni", true, map[string][]byte{`bin\shared.exe`: shared, `bin\empty.txt`: empty},
			`bin\shared.exe`, `bin\empty.txt`),
		azureSource,
	}}
}

func writeTest(t testing.TB) (string, *Payload) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "payload")
	p, err := Write(dir, testBuild())
	if err != nil {
		t.Fatal(err)
	}
	return dir, p
}

func TestWriteAndLoad(t *testing.T) {
	t.Run("every file can be read back", func(t *testing.T) {
		dir, _ := writeTest(t)
		p, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range [][]byte{kubelet, shared, empty, agent, azure} {
			r, err := p.Open(sumOf(want))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, error %v; want %d bytes", len(got), err, len(want))
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("the agent is a component of its own", func(t *testing.T) {
		_, p := writeTest(t)
		f, err := p.Agent()
		if err != nil || f.SHA256 != sumOf(agent) || f.Size != int64(len(agent)) {
			t.Errorf("got %+v, error %v", f, err)
		}
	})
	t.Run("the agent is compared with its digest before it is read", func(t *testing.T) {
		_, p := writeTest(t)
		r, err := p.OpenAgent()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, agent) {
			t.Errorf("got %d bytes, error %v", len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		dir, _ := writeTest(t)
		changed := bytes.Clone(agent)
		changed[len(changed)-1]++
		if err := os.WriteFile(filepath.Join(dir, storeName, sumOf(agent)), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err = Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.OpenAgent(); !errors.Is(err, ErrDamaged) {
			t.Errorf("a changed one can be opened: %v", err)
		}
	})
	//
	t.Run("a component of one platform is for hosts of that platform only", func(t *testing.T) {
		_, p := writeTest(t)
		if got := len(p.Components(Target{Platform: "Azure"})); got != 4 {
			t.Errorf("got %d components on Azure, want 4", got)
		}
		if got := len(p.Components(Target{Platform: "None"})); got != 3 {
			t.Errorf("got %d components on None, want 3", got)
		}
	})
	t.Run("the same input gives the same bytes, also over what is there", func(t *testing.T) {
		a, _ := writeTest(t)
		b, _ := writeTest(t)
		if _, err := Write(b, testBuild()); err != nil {
			t.Fatal(err)
		}
		if got, want := describeTree(t, b), describeTree(t, a); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("a damaged file of the store is written anew, and one in another form goes", func(t *testing.T) {
		dir, p := writeTest(t)
		path := filepath.Join(dir, "store", sumOf(kubelet))
		if err := errors.Join(os.WriteFile(path, kubelet, 0o600), os.WriteFile(path+".zst", kubelet[:10], 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(dir, testBuild()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the other form is still there: %v", err)
		}
		if err := p.Verify(); err != nil {
			t.Error(err)
		}
	})
	t.Run("so is one that is damaged behind its header", func(t *testing.T) {
		for _, name := range []string{sumOf(kubelet) + ".zst", sumOf(agent)} {
			dir, _ := writeTest(t)
			path := filepath.Join(dir, "store", name)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)/2] ^= 1
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Write(dir, testBuild())
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(); err != nil {
				t.Error(err)
			}
		}
	})
}

func describeTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s\n", strings.TrimPrefix(path, dir), sumOf(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func packOf(dir string) string {
	paths, err := filepath.Glob(filepath.Join(dir, "store", "*.pack"))
	if err != nil || len(paths) != 1 {
		panic(fmt.Sprintf("%d packs, error %v", len(paths), err))
	}
	return paths[0]
}

func TestLoad_RejectsDamagedPayload(t *testing.T) {
	store := func(dir string, content []byte, suffix string) string {
		return filepath.Join(dir, "store", sumOf(content)+suffix)
	}
	tests := map[string]struct {
		break_ func(dir string) error
		want   string
	}{
		"a folder without manifest": {
			break_: func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) },
			want:   "use a directory written by the payload build",
		},
		"a required component without its file": {
			break_: func(dir string) error { return os.Remove(store(dir, kubelet, ".zst")) },
			want:   "component kubelet: file kubelet.exe: not in the store",
		},
		"a file that was cut off": {
			break_: func(dir string) error { return os.Truncate(store(dir, agent, ""), 7) },
			want:   "the size is 7 bytes, but the manifest lists 50000",
		},
		"an invalid compressed file": {
			break_: func(dir string) error { return os.WriteFile(store(dir, kubelet, ".zst"), kubelet, 0o600) },
			want:   "not a zstd file",
		},
		"a compressed file of another size": {
			break_: func(dir string) error {
				return os.Rename(store(dir, azure, ".zst"), store(dir, kubelet, ".zst"))
			},
			want: "component kubelet: file kubelet.exe: the payload is damaged: the size is 10000 bytes, but the manifest lists 300000",
		},
		"a pack that is gone": {
			break_: func(dir string) error { return os.Remove(packOf(dir)) },
			want:   "a pack of 3 files: ",
		},
		"a pack that was cut off": {
			break_: func(dir string) error { return os.Truncate(packOf(dir), 7) },
			want:   "build the payload again with `make payload`",
		},
		"an empty compressed file": {
			break_: func(dir string) error { return os.Truncate(store(dir, kubelet, ".zst"), 0) },
			want:   "not a zstd file",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, _ := writeTest(t)
			if err := test.break_(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
	t.Run("but not a payload that lacks an optional component, which it leaves out", func(t *testing.T) {
		dir, _ := writeTest(t)
		if err := os.Remove(store(dir, azure, ".zst")); err != nil {
			t.Fatal(err)
		}
		p, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if p.Missing("azure-cloud-node-manager", "") == nil || len(p.Components(Target{Platform: "Azure"})) != 3 {
			t.Errorf("got missing %v, %d components", p.Missing("azure-cloud-node-manager", ""), len(p.Components(Target{Platform: "Azure"})))
		}
	})
}

func TestOpen_FindsChangedContent(t *testing.T) {
	for name, file := range map[string]struct {
		sum, suffix string
	}{"in a compressed file": {sumOf(kubelet), ".zst"}, "in the agent": {sumOf(agent), ""}} {
		t.Run(name, func(t *testing.T) {
			dir, p := writeTest(t)
			path := filepath.Join(dir, "store", file.sum+file.suffix)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)/2] ^= 1
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := p.Open(file.sum)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := io.Copy(io.Discard, r); !errors.Is(err, ErrDamaged) {
				t.Errorf("got error %v, want ErrDamaged", err)
			}
		})
	}
	t.Run("a digest that is not in the manifest", func(t *testing.T) {
		_, p := writeTest(t)
		if _, err := p.Open("../manifest.json"); err == nil {
			t.Error("it was opened")
		}
	})
}
