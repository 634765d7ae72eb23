package payload

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func archiveOf(t testing.TB, p *Payload, sums ...string) []byte {
	t.Helper()
	archive, err := p.Archive(sums)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	content, err := io.ReadAll(archive.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if archive.Size != int64(len(content)) {
		t.Fatalf("it has %d bytes, and says %d", len(content), archive.Size)
	}
	return content
}

func unpackAll(r io.Reader) (map[string][]byte, error) {
	got := map[string][]byte{}
	err := Unpack(r, func(sum string, size int64, content io.Reader) error {
		b, err := io.ReadAll(io.LimitReader(content, 1<<20))
		if err == nil {
			got[sum] = b
		}
		return err
	})
	return got, err
}

func TestUnpack(t *testing.T) {
	_, p := writeTest(t)
	all := []string{sumOf(kubelet), sumOf(shared), sumOf(empty)}

	t.Run("content that the receiver does not read is checked all the same", func(t *testing.T) {
		err := Unpack(bytes.NewReader(archiveOf(t, p, all...)), func(string, int64, io.Reader) error { return nil })
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("an error of the receiver is no damage", func(t *testing.T) {
		full := errors.New("disk full")
		err := Unpack(bytes.NewReader(archiveOf(t, p, all...)), func(string, int64, io.Reader) error { return full })
		if !errors.Is(err, full) || errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("an error of the reader is no damage", func(t *testing.T) {
		errGone := errors.New("connection reset")
		archive := archiveOf(t, p, all...)
		_, err := unpackAll(io.MultiReader(bytes.NewReader(archive[:len(archive)/2]), iotest.ErrReader(errGone)))
		if !errors.Is(err, errGone) || errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v", err)
		}
	})
}

func TestUnpack_RejectsDamage(t *testing.T) {
	_, p := writeTest(t)
	archive := archiveOf(t, p, sumOf(shared), sumOf(azure), sumOf(empty))
	want := map[string][]byte{sumOf(shared): shared, sumOf(azure): azure, sumOf(empty): empty}
	// check allows damage without effect, such as a changed bit of the header that has no meaning.
	check := func(t *testing.T, what string, at int, damagedArchive []byte) {
		t.Helper()
		got, err := unpackAll(bytes.NewReader(damagedArchive))
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s at %d: error %v is no ErrDamaged", what, at, err)
		}
		if err == nil && !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s at %d: accepted with other content", what, at)
		}
		for sum, content := range got {
			if sumOf(content) != sum {
				t.Errorf("%s at %d: a changed file was handed out as whole", what, at)
			}
		}
	}
	t.Run("an archive that was cut off anywhere", func(t *testing.T) {
		for n := 0; n < len(archive); n += 1 + n/100 {
			if _, err := unpackAll(bytes.NewReader(archive[:n])); !errors.Is(err, ErrDamaged) {
				t.Errorf("cut off at %d: error %v", n, err)
			}
		}
		for n := len(archive) - 20; n < len(archive); n++ {
			if _, err := unpackAll(bytes.NewReader(archive[:n])); !errors.Is(err, ErrDamaged) {
				t.Errorf("cut off at %d: error %v", n, err)
			}
		}
	})
	t.Run("an archive with a bit changed anywhere", func(t *testing.T) {
		for n := 0; n < len(archive); n += 1 + n/100 {
			changed := bytes.Clone(archive)
			changed[n] ^= 1 << (n % 8)
			check(t, "bit flip", n, changed)
		}
	})
	t.Run("an archive with something behind it", func(t *testing.T) {
		if _, err := unpackAll(bytes.NewReader(append(bytes.Clone(archive), "more"...))); !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
	})
}

// compressZstd returns the content of an archive as a zstd stream.
func compressZstd(t testing.TB, inside []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(inside); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpack_RejectsInvalidContent(t *testing.T) {
	content := []byte("content")
	digest := mustHex(sumOf(content))
	file := slices.Concat([]byte{'F'}, digest, []byte{0, 0, 0, 0, 0, 0, 0, 7}, content)
	end := func(n byte) []byte { return []byte{'E', 0, 0, 0, n} }
	magic := []byte(archiveMagic)
	tests := map[string]struct {
		inside []byte
		want   string
	}{
		"another kind of stream":        {[]byte("hello, world"), "not a payload archive"},
		"an empty stream":               {nil, "unexpected end of the data"},
		"no end":                        {slices.Concat(magic, file), "unexpected end of the data"},
		"a file less than the end says": {slices.Concat(magic, file, end(2)), "does not contain the declared 2 files"},
		"a file more than the end says": {slices.Concat(magic, file, end(0)), "does not contain the declared 0 files"},
		"a file twice":                  {slices.Concat(magic, file, file, end(2)), " twice"},
		"an unknown tag":                {slices.Concat(magic, []byte("X")), "byte 0x58"},
		"something after the end":       {slices.Concat(magic, file, end(1), []byte("x")), "data follows the end"},
		"a size beyond all reason": {slices.Concat(magic, []byte{'F'}, digest, []byte{255, 0, 0, 0, 0, 0, 0, 7}),
			"is declared with"},
		"content of another digest":       {slices.Concat(magic, file[:len(file)-1], []byte("T"), end(1)), "has sha256"},
		"content shorter than its header": {slices.Concat(magic, file[:len(file)-3]), "content ends after 4 of 7 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := unpackAll(bytes.NewReader(compressZstd(t, test.inside)))
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want ErrDamaged with %q", err, test.want)
			}
		})
	}
}

func TestUnpack_BoundsMemory(t *testing.T) {
	t.Run("a window larger than allowed is refused", func(t *testing.T) {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, zstd.WithWindowSize(2*maxWindowBytes), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		// The content is larger than one block, so that the encoder does not reduce the window to the content size.
		for range 3 {
			if _, err := w.Write(randomContent(9, 200_000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := unpackAll(&b); !errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("the window is no larger than the content needs", func(t *testing.T) {
		if got := windowFor(1<<20+1, 0); got != 2<<20 {
			t.Errorf("got %d", got)
		}
		if got := windowFor(1<<30, 0); got != DefaultWindowBytes {
			t.Errorf("got %d", got)
		}
		if got := windowFor(0, 0); got != minWindowBytes {
			t.Errorf("got %d", got)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	_, p := writeTest(f)
	f.Add(archiveOf(f, p, sumOf(azure), sumOf(empty)))
	f.Add(compressZstd(f, []byte(archiveMagic+"E\x00\x00\x00\x00")))
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := unpackAll(bytes.NewReader(data))
		for sum, content := range got {
			if sumOf(content) != sum {
				t.Errorf("content does not match its digest (error %v)", err)
			}
		}
	})
}

// FuzzUnpackInside modifies the decompressed content, because the checksum of the stream would reject modifications
// of the compressed bytes.
func FuzzUnpackInside(f *testing.F) {
	f.Add([]byte(archiveMagic + "E\x00\x00\x00\x00"))
	f.Add(slices.Concat([]byte(archiveMagic), []byte{'F'}, mustHex(sumOf(empty)), make([]byte, 8),
		[]byte("E\x00\x00\x00\x01")))
	f.Fuzz(func(t *testing.T, inside []byte) {
		got, err := unpackAll(bytes.NewReader(compressZstd(t, inside)))
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v is no ErrDamaged", err)
		}
		for sum, content := range got {
			if sumOf(content) != sum {
				t.Error("content does not match its digest")
			}
		}
	})
}
