package payload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestArchive(t *testing.T) {
	_, p := writeTest(t)
	packed := []string{sumOf(kubelet), sumOf(shared), sumOf(empty)}

	for name, desired := range map[string][][]byte{
		"of all files": {kubelet, shared, empty, azure}, "of the pack alone": {kubelet, shared, empty},
		"of a part of the pack": {shared, empty}, "of what only one platform gets": {azure}, "of an empty file": {empty},
		"of nothing": nil,
	} {
		t.Run("an archive "+name+" unpacks to exactly that", func(t *testing.T) {
			var sums []string
			for _, content := range desired {
				sums = append(sums, sumOf(content))
			}
			got, err := unpackAll(iotest.OneByteReader(bytes.NewReader(archiveOf(t, p, sums...))))
			if err != nil || len(got) != len(desired) {
				t.Fatalf("got %d files, error %v", len(got), err)
			}
			for _, want := range desired {
				if content, ok := got[sumOf(want)]; !ok || !bytes.Equal(content, want) {
					t.Errorf("a file of %d bytes came out with %d", len(want), len(content))
				}
			}
		})
	}
	t.Run("a patch comes out as it was made", func(t *testing.T) {
		_, first := writeRelease(t, 1)
		_, second := writeRelease(t, 2, first)
		patch := second.Manifest().Patches[0].SHA256
		got, err := unpackAll(bytes.NewReader(archiveOf(t, second, patch)))
		if err != nil || len(got) != 1 || sumOf(got[patch]) != patch {
			t.Errorf("got %d files, error %v", len(got), err)
		}
	})
	t.Run("the same set gives the same bytes and name in any order", func(t *testing.T) {
		reversed := append(slices.Clone(packed), packed[0])
		slices.Reverse(reversed)
		if !bytes.Equal(archiveOf(t, p, packed...), archiveOf(t, p, reversed...)) || nameOf(t, p, packed) != nameOf(t, p, reversed) {
			t.Error("the archives differ")
		}
	})
	t.Run("another set, or another payload, gives another name", func(t *testing.T) {
		build := testBuild()
		build.Version = "v10.0.1"
		other, err := Write(t.TempDir(), build)
		if err != nil {
			t.Fatal(err)
		}
		name := nameOf(t, p, packed)
		if nameOf(t, p, packed[1:]) == name || nameOf(t, other, packed) == name {
			t.Error("it has the same name: a transfer of one would be resumed as the other")
		}
	})
	t.Run("what files have in common is sent once", func(t *testing.T) {
		together := len(archiveOf(t, p, packed...))
		if alone := len(archiveOf(t, p, sumOf(kubelet))) + len(archiveOf(t, p, sumOf(shared))); alone-together < 90_000 {
			t.Errorf("two files with 100 kB in common take %d bytes together, and %d alone", together, alone)
		}
	})
	t.Run("it can be read from anywhere, as a transfer that is resumed does", func(t *testing.T) {
		archive, err := p.Archive(append(packed, sumOf(azure)))
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		if err := iotest.TestReader(archive.Reader(), archiveOf(t, p, append(packed, sumOf(azure))...)); err != nil {
			t.Error(err)
		}
	})
	t.Run("an unknown digest is an error that names it", func(t *testing.T) {
		if _, err := p.Archive([]string{"beef"}); err == nil || !strings.Contains(err.Error(), `"beef"`) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("the agent, which goes as it is, is refused", func(t *testing.T) {
		if _, err := p.Archive([]string{sumOf(agent)}); err == nil || !strings.Contains(err.Error(), "before all archives") {
			t.Errorf("got error %v", err)
		}
	})
}

func nameOf(t *testing.T, p *Payload, sums []string) string {
	t.Helper()
	archive, err := p.Archive(sums)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	return archive.Name
}

// Damage in the operator's own image must be detected in the operator, not on each host.
func TestArchive_StoreDamageFoundBeforeSending(t *testing.T) {
	for name, damaged := range map[string]struct {
		path func(p *Payload) string
		sums []string
	}{
		"in a pack": {func(p *Payload) string { return p.packPath(p.Manifest().Packs[0]) },
			[]string{sumOf(kubelet), sumOf(shared), sumOf(empty)}},
		"in a file": {func(p *Payload) string { return p.storePath(sumOf(kubelet)) + zstdSuffix }, []string{sumOf(kubelet)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := writeTest(t)
			data, err := os.ReadFile(damaged.path(p))
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			if err := os.WriteFile(damaged.path(p), data, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Archive(damaged.sums); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "make payload") {
				t.Errorf("got error %v", err)
			}
		})
	}
	t.Run("a store that changes later is an error of the transfer", func(t *testing.T) {
		_, p := writeTest(t)
		archive, err := p.Archive([]string{sumOf(kubelet)})
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		if err := os.Truncate(p.storePath(sumOf(kubelet))+zstdSuffix, 1000); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, archive.Reader()); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
			t.Errorf("got error %v", err)
		}
	})
}

// The error of Load advises the administrator to add a missing file to the store uncompressed.
func TestArchive_ManuallyAddedFileSent(t *testing.T) {
	for _, content := range [][]byte{kubelet, randomContent(5, 128<<10), randomContent(6, 256)} {
		build := testBuild()
		build.Components[1] = newSource("kubelet", true, map[string][]byte{"kubelet.exe": content}, "kubelet.exe")
		dir := t.TempDir()
		p, err := Write(dir, build)
		if err != nil {
			t.Fatal(err)
		}
		path := p.storePath(sumOf(content))
		if err := errors.Join(os.Remove(path+zstdSuffix), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		if p, err = Load(dir); err != nil {
			t.Fatal(err)
		}
		got, err := unpackAll(bytes.NewReader(archiveOf(t, p, sumOf(content), sumOf(azure))))
		if err != nil || !bytes.Equal(got[sumOf(content)], content) || !bytes.Equal(got[sumOf(azure)], azure) {
			t.Errorf("of %d bytes arrive %d (%v)", len(content), len(got[sumOf(content)]), err)
		}
	}
}

// An archive may wait for several minutes between its creation and its transfer.
func TestArchive_NoFileOpenBeforeReading(t *testing.T) {
	_, p := writeTest(t)
	archive, err := p.Archive([]string{sumOf(kubelet), sumOf(shared), sumOf(empty), sumOf(azure)})
	if err != nil {
		t.Fatal(err)
	}
	files, open := 0, 0
	count := func() {
		files, open = 0, 0
		for _, piece := range archive.pieces {
			if stored, ok := piece.content.(*storedFile); ok {
				files++
				if stored.file != nil {
					open++
				}
			}
		}
	}
	if count(); files == 0 || open > 0 {
		t.Errorf("%d of %d files are open", open, files)
	}
	if _, err := io.Copy(io.Discard, archive.Reader()); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if count(); open > 0 {
		t.Errorf("%d of %d files are open after the end", open, files)
	}
}

// The operator sends archives to hundreds of hosts at once, so the memory per archive must not depend on the payload
// size.
func TestArchive_MemoryIndependentOfSize(t *testing.T) {
	_, p := writeTest(t)
	sums := []string{sumOf(kubelet), sumOf(shared), sumOf(empty), sumOf(azure)}
	archiveOf(t, p, sums...) // verified against the digests, once
	buffer := make([]byte, 32<<10)
	const runs = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		archive, err := p.Archive(sums)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{archive.Reader()}, buffer); err != nil {
			t.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) / runs; allocated > 16<<10 {
		t.Errorf("an archive of %d bytes takes %d bytes of memory", len(archiveOf(t, p, sums...)), allocated)
	}
}
