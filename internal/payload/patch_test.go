package payload

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// releaseContent returns content in which every 64th byte depends on the release, like the addresses in an executable.
func releaseContent(number byte, size int) []byte {
	content := randomContent(7, size)
	for i := 0; i < size; i += 64 {
		content[i] += number
	}
	return content
}

func mustCreatePatch(t testing.TB, from, to []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := CreatePatch(&b, from, to); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPatch(t *testing.T) {
	from, to := releaseContent(1, 400_000), releaseContent(2, 410_000)
	patch := mustCreatePatch(t, from, to)

	t.Run("the old file and the patch make the new file", func(t *testing.T) {
		var got bytes.Buffer
		header, err := ApplyPatch(&got, from, iotest.OneByteReader(bytes.NewReader(patch)))
		if err != nil || !bytes.Equal(got.Bytes(), to) {
			t.Fatalf("got %d bytes, error %v", got.Len(), err)
		}
		want := PatchHeader{FromSHA256: sumOf(from), FromSize: 400_000, ToSHA256: sumOf(to), ToSize: 410_000}
		if header != want {
			t.Errorf("got header %+v, want %+v", header, want)
		}
	})
	t.Run("it is much smaller than the new file", func(t *testing.T) {
		if len(patch) > len(to)/5 {
			t.Errorf("the patch to %d bytes has %d", len(to), len(patch))
		}
	})
	t.Run("equal input gives equal bytes", func(t *testing.T) {
		if !bytes.Equal(patch, mustCreatePatch(t, from, to)) {
			t.Error("the patches differ")
		}
	})
	t.Run("files of very different size are no problem", func(t *testing.T) {
		for _, pair := range [][2][]byte{{from[:1], to}, {from, to[:1]}, {from, from}} {
			var got bytes.Buffer
			if _, err := ApplyPatch(&got, pair[0], bytes.NewReader(mustCreatePatch(t, pair[0], pair[1]))); err != nil ||
				!bytes.Equal(got.Bytes(), pair[1]) {
				t.Errorf("from %d to %d bytes: got %d, error %v", len(pair[0]), len(pair[1]), got.Len(), err)
			}
		}
	})
	t.Run("an empty file is refused", func(t *testing.T) {
		for _, pair := range [][2][]byte{{nil, to}, {from, nil}} {
			if err := CreatePatch(io.Discard, pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "empty") {
				t.Errorf("got error %v", err)
			}
		}
	})
	t.Run("another old file is refused before anything is written", func(t *testing.T) {
		changed := slices.Clone(from)
		changed[1000]++
		for _, other := range [][]byte{changed, from[1:], nil} {
			var got bytes.Buffer
			if _, err := ApplyPatch(&got, other, bytes.NewReader(patch)); !errors.Is(err, ErrNotPatchable) || got.Len() > 0 {
				t.Errorf("an old file of %d bytes: error %v, %d bytes written", len(other), err, got.Len())
			}
		}
	})
	t.Run("an error of the reader is passed on as it is", func(t *testing.T) {
		failure := errors.New("the line is broken")
		r := io.MultiReader(bytes.NewReader(patch[:len(patch)/2]), iotest.ErrReader(failure))
		if _, err := ApplyPatch(io.Discard, from, r); !errors.Is(err, failure) || errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("an error of the writer is passed on", func(t *testing.T) {
		full := errors.New("the disk is full")
		if _, err := ApplyPatch(writerFunc(func([]byte) (int, error) {
			return 0, full
		}), from, bytes.NewReader(patch)); !errors.Is(err, full) {
			t.Errorf("got error %v", err)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

func TestDamagedPatch(t *testing.T) {
	from, to := releaseContent(1, 60_000), releaseContent(2, 61_000)
	patch := mustCreatePatch(t, from, to)
	changed := func(at int) []byte {
		c := slices.Clone(patch)
		c[at] ^= 0x10
		return c
	}
	otherTo := slices.Clone(patch)
	copy(otherTo[48:], bytes.Repeat([]byte{9}, 32))
	huge := binary.BigEndian.AppendUint64(slices.Clone(patch[:80]), 1<<60)
	for name, damaged := range map[string][]byte{
		"nothing at all":                    nil,
		"a patch that ends in its header":   patch[:50],
		"a patch without content":           patch[:patchHeader],
		"a patch that is cut off":           patch[:len(patch)-1],
		"a patch that goes on":              append(slices.Clone(patch), 1, 2, 3, 4, 5),
		"another kind of file":              changed(0),
		"another size of the new file":      changed(patchHeader - 2),
		"another digest of the new file":    otherTo,
		"a new file larger than files are":  huge,
		"a changed byte within the content": changed(patchHeader + len(patch)/2),
	} {
		t.Run(name+" is damaged", func(t *testing.T) {
			if _, err := ApplyPatch(io.Discard, from, bytes.NewReader(damaged)); !errors.Is(err, ErrDamaged) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func FuzzApplyPatch(f *testing.F) {
	from, to := releaseContent(1, 5000), releaseContent(2, 5000)
	patch := mustCreatePatch(f, from, to)
	f.Add(patch)
	f.Add(patch[:patchHeader])
	f.Add(patch[:len(patch)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		var got bytes.Buffer
		header, err := ApplyPatch(&got, from, bytes.NewReader(data))
		if err == nil && (sumOf(got.Bytes()) != header.ToSHA256 || int64(got.Len()) != header.ToSize) {
			t.Errorf("%d bytes were accepted as %+v", got.Len(), header)
		}
		if got.Len() > 0 && header.FromSHA256 != sumOf(from) {
			t.Error("a patch for another file was applied")
		}
	})
}

func FuzzPatchRoundTrip(f *testing.F) {
	f.Add([]byte("old content"), []byte("new content"))
	f.Add(releaseContent(1, 3000), releaseContent(2, 100))
	f.Fuzz(func(t *testing.T, from, to []byte) {
		if len(from) == 0 || len(to) == 0 {
			return
		}
		var got bytes.Buffer
		if _, err := ApplyPatch(&got, from, bytes.NewReader(mustCreatePatch(t, from, to))); err != nil ||
			!bytes.Equal(got.Bytes(), to) {
			t.Errorf("got %s, error %v", hex.EncodeToString(got.Bytes()), err)
		}
	})
}

func TestAsPatch(t *testing.T) {
	patch := mustCreatePatch(t, []byte("old content"), []byte("new content"))
	for name, c := range map[string]struct {
		content []byte
		want    bool
	}{
		"a patch":                   {patch, true},
		"an executable":             {[]byte("MZ and so on"), false},
		"a file that is too short":  {[]byte("WMCO"), false},
		"an empty file":             {nil, false},
		"a file that speaks of one": {[]byte("about WMCOPAT1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			reader, is, err := AsPatch(iotest.OneByteReader(bytes.NewReader(c.content)))
			if err != nil || is != c.want {
				t.Fatalf("patch: %t, error %v", is, err)
			}
			if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, c.content) {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
	failure := errors.New("broken")
	if _, _, err := AsPatch(iotest.ErrReader(failure)); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
}
