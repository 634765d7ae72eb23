package payload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// writeRelease writes a payload with a kubelet that differs slightly between releases and an agent that does not
// change.
func writeRelease(t *testing.T, number byte, earlier ...*Payload) (string, *Payload) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "payload")
	p, err := Write(dir, Build{Version: "v10.0.0", Earlier: earlier, Components: []Source{
		newSource("wicd", true, map[string][]byte{"wicd.exe": agent}, "wicd.exe"),
		newSource("kubelet", true, map[string][]byte{"kubelet.exe": releaseContent(number, 200_000), "new.exe": randomContent(uint64(number)+50,
			5000)}, "kubelet.exe", "new.exe"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return dir, p
}

func TestPatches(t *testing.T) {
	_, first := writeRelease(t, 1)
	_, second := writeRelease(t, 2, first)
	dir, third := writeRelease(t, 3, second, first, second)
	from, to := sumOf(releaseContent(1, 200_000)), sumOf(releaseContent(3, 200_000))

	t.Run("there is one from each earlier payload, to changed files only, and none that is larger than the file", func(t *testing.T) {
		if len(first.Manifest().Patches) != 0 || len(second.Manifest().Patches) != 1 || len(third.Manifest().Patches) != 2 {
			t.Fatalf("got %+v", third.Manifest().Patches)
		}
		for _, p := range third.Patches(to) {
			if p.To != to || p.Size > 40_000 {
				t.Errorf("got %+v", p)
			}
		}
	})
	t.Run("it makes the new file of the old", func(t *testing.T) {
		for _, p := range third.Patches(to) {
			if p.From != from {
				continue
			}
			r, err := third.Open(p.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got bytes.Buffer
			if header, err := ApplyPatch(&got, releaseContent(1, 200_000), r); err != nil || header.ToSHA256 != to || sumOf(got.Bytes()) != to {
				t.Errorf("got header %+v, error %v", header, err)
			}
		}
	})
	t.Run("the same input gives the same manifest and patches", func(t *testing.T) {
		_, again := writeRelease(t, 3, second, first)
		if !reflect.DeepEqual(third.Manifest(), again.Manifest()) {
			t.Errorf("got %+v and %+v", third.Manifest(), again.Manifest())
		}
	})
	t.Run("a patch that is gone or cut off is not offered, and the payload is whole without it", func(t *testing.T) {
		patches := third.Patches(to)
		if err := os.Remove(third.storePath(patches[0].SHA256) + zstdSuffix); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(third.storePath(patches[1].SHA256)+zstdSuffix, 3); err != nil {
			t.Fatal(err)
		}
		p, err := Load(dir)
		if err != nil || len(p.Patches(to)) != 0 {
			t.Fatalf("got patches %v, error %v", p.Patches(to), err)
		}
		if _, err := p.Open(patches[0].SHA256); err == nil {
			t.Error("it can be opened")
		}
	})
	t.Run("a patch that was changed in the store is damaged when it is read", func(t *testing.T) {
		patch := second.Manifest().Patches[0]
		data, err := os.ReadFile(second.storePath(patch.SHA256) + zstdSuffix)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2]++
		if err := os.WriteFile(second.storePath(patch.SHA256)+zstdSuffix, data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := second.Open(patch.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v", err)
		}
	})
}

func TestPrune(t *testing.T) {
	_, first := writeRelease(t, 1)
	dir, p := writeRelease(t, 2, first)
	for _, name := range []string{sumOf(releaseContent(1, 200_000)) + ".zst", sumOf(azure), strings.Repeat("a", 64) + ".pack",
		".partial-1"} {
		if err := os.WriteFile(filepath.Join(dir, "store", name), azure, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := p.StoredBytes()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("what an earlier build left in the store goes, and all that the manifest names stays", func(t *testing.T) {
		if err := Prune(dir); err != nil {
			t.Fatal(err)
		}
		after, err := p.StoredBytes()
		if err != nil || before-after != int64(4*len(azure)) {
			t.Errorf("there were %d bytes and now are %d, error %v", before, after, err)
		}
		p, err := Load(dir)
		if err != nil || len(p.Patches(sumOf(releaseContent(2, 200_000)))) != 1 {
			t.Errorf("error %v", err)
		}
	})
	t.Run("nothing is deleted where there is no payload", func(t *testing.T) {
		if err := Prune(t.TempDir()); err == nil {
			t.Error("no error")
		}
	})
}

func TestAbsentComponents(t *testing.T) {
	build := testBuild()
	build.Absent = []Absent{{Name: "hybrid-overlay-node", Reason: "nobody brought it"}}
	dir := t.TempDir()
	if _, err := Write(dir, build); err != nil {
		t.Fatal(err)
	}
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("what the payload lacks it says, with the reason", func(t *testing.T) {
		if err := p.Missing("hybrid-overlay-node", ""); err == nil || !strings.Contains(err.Error(),
			"hybrid-overlay-node: nobody brought it") {
			t.Errorf("got error %v", err)
		}
		if p.Missing("kubelet", "") != nil {
			t.Error("the kubelet is missing")
		}
	})
	t.Run("all gaps can be told at once", func(t *testing.T) {
		if err := os.Remove(p.storePath(sumOf(azure)) + ".zst"); err != nil {
			t.Fatal(err)
		}
		p, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if gaps := p.Gaps(); len(gaps) != 2 || !strings.Contains(gaps[0].Reason.Error(), "azure") ||
			!strings.Contains(gaps[1].Reason.Error(), "hybrid") {
			t.Errorf("got %v", gaps)
		}
	})
	t.Run("a component that is there cannot be absent, nor one without a reason", func(t *testing.T) {
		for _, absent := range []Absent{{Name: "kubelet", Reason: "why"}, {Name: "other"},
			{Name: "Bad Name", Reason: "why"}} {
			build.Absent = []Absent{absent}
			if _, err := Write(t.TempDir(), build); err == nil || !strings.Contains(err.Error(), absent.Name) {
				t.Errorf("%+v: got error %v", absent, err)
			}
		}
	})
}

func TestValidatePatches(t *testing.T) {
	_, first := writeRelease(t, 1)
	_, second := writeRelease(t, 2, first)
	good := second.Manifest().Patches[0]
	for name, test := range map[string]struct {
		change func(*Patch)
		want   string
	}{
		"an invalid digest": {func(p *Patch) { p.From = "beef" }, "not a digest"},
		"a file that is not there": {func(p *Patch) {
			p.To = strings.Repeat("0", 64)
		}, "the target is not a file of the payload"},
		"a patch to the same file":     {func(p *Patch) { p.From = p.To }, "source and target are equal"},
		"a patch without content":      {func(p *Patch) { p.Size = 10 }, "size 10"},
		"a patch that is listed twice": {func(*Patch) {}, "twice"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			m := second.Manifest()
			bad := good
			test.change(&bad)
			m.Patches = []Patch{good, bad}
			if err := m.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
}
