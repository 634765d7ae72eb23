package payload

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// A patch creates a new file from an old file on the host. Its format is:
//
//	"WMCOPAT1"
//	the old file's sha256 (32 bytes) and size (8 bytes, big endian)
//	the new file's sha256 and size
//	one zstd frame: the new file, compressed with the whole old file as its raw dictionary
//
// Addresses differ nearly everywhere in the executables of two patch releases, so equal blocks or chunks are rare.
// Between the addresses nearly all bytes are equal, and a dictionary as large as the file captures these bytes.
const (
	patchMagic  = "WMCOPAT1"
	patchHeader = len(patchMagic) + 2*(32+8)
	// patchDictionary is the dictionary identifier of the old file in the frame.
	patchDictionary = 1
)

// Patch is a patch in the store.
type Patch struct {
	From   string `json:"from"`   // sha256 of the old file
	To     string `json:"to"`     // sha256 of the new file
	Size   int64  `json:"size"`   // of the patch, in bytes
	SHA256 string `json:"sha256"` // of the patch
}

// PatchHeader describes the old and the new file of a patch.
type PatchHeader struct {
	FromSHA256 string
	FromSize   int64 // in bytes
	ToSHA256   string
	ToSize     int64
}

// CreatePatch writes a patch from one content to another. The output is deterministic. CreatePatch needs about three
// times as much memory as the size of the contents.
func CreatePatch(w io.Writer, from, to []byte) error {
	header := PatchHeader{FromSHA256: digestOf(from), FromSize: int64(len(from)), ToSHA256: digestOf(to),
		ToSize: int64(len(to))}
	if len(from) == 0 || len(to) == 0 {
		return errors.New("create a patch: the old or the new file is empty")
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(wireLevel), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(patchWindow(header)), zstd.WithEncoderDictRaw(patchDictionary, from))
	if err != nil {
		return fmt.Errorf("create a patch: %w", err)
	}
	if _, err := w.Write(header.encodeHeader()); err != nil {
		return fmt.Errorf("create a patch: %w", err)
	}
	encoder.ResetContentSize(w, header.ToSize)
	_, err = encoder.Write(to)
	if err := errors.Join(err, encoder.Close()); err != nil {
		return fmt.Errorf("create a patch: %w", err)
	}
	return nil
}

// patchWindow returns a window that spans the complete old and new files, limited to maxWindowBytes.
func patchWindow(h PatchHeader) int {
	window := int64(1) << bits.Len64(uint64(h.FromSize+h.ToSize-1)) //nolint:gosec // G115: no size is negative
	return int(min(max(window, minWindowBytes), maxWindowBytes))
}

// ReadPatchHeader reads the header of a patch and leaves the rest for Apply. Other content results in ErrDamaged.
func ReadPatchHeader(r io.Reader) (PatchHeader, error) {
	data := make([]byte, patchHeader)
	if _, err := io.ReadFull(r, data); err != nil {
		return PatchHeader{}, fmt.Errorf("read a patch: %w", convertEOF(err))
	}
	rest, ok := bytes.CutPrefix(data, []byte(patchMagic))
	if !ok {
		return PatchHeader{}, fmt.Errorf("%w: the data is not a patch", ErrDamaged)
	}
	fromSize, toSize := binary.BigEndian.Uint64(rest[32:]), binary.BigEndian.Uint64(rest[72:])
	if fromSize == 0 || toSize == 0 || fromSize > maxFileBytes || toSize > maxFileBytes {
		return PatchHeader{}, fmt.Errorf("%w: the patch declares the invalid sizes %d for the new and %d for the old file", ErrDamaged, toSize, fromSize)
	}
	return PatchHeader{
		FromSHA256: hex.EncodeToString(rest[:32]), FromSize: int64(fromSize),
		ToSHA256: hex.EncodeToString(rest[40:72]), ToSize: int64(toSize),
	}, nil
}

// AsPatch reports whether content from an archive is a patch, and returns a reader of the complete content.
func AsPatch(content io.Reader) (whole io.Reader, patch bool, err error) {
	r := bufio.NewReader(content)
	start, err := r.Peek(len(patchMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	return r, string(start) == patchMagic, nil
}

func (h PatchHeader) encodeHeader() []byte {
	data := []byte(patchMagic)
	for _, end := range []struct {
		sum  string
		size int64
	}{{h.FromSHA256, h.FromSize}, {h.ToSHA256, h.ToSize}} {
		digest, err := hex.DecodeString(end.sum)
		if err != nil || len(digest) != sha256.Size {
			panic(fmt.Sprintf("encode a patch: %q is not a SHA-256 digest", end.sum)) // CreatePatch computed the digests.
		}
		data = binary.BigEndian.AppendUint64(append(data, digest...), uint64(end.size)) //nolint:gosec // G115: no size is negative
	}
	return data
}

// Apply returns the content of the new file, read from the old file and the rest of a patch after its header. If the
// patch was made for another old file, Apply returns ErrNotPatchable. The content ends in io.EOF only if size and
// digest of the new file are correct, and otherwise in ErrDamaged. The caller must discard content that cannot be
// read to the end. The old file must not change while the content is read. The caller must close the content.
func (h PatchHeader) Apply(patch io.Reader, from []byte) (io.ReadCloser, error) {
	if int64(len(from)) != h.FromSize {
		return nil, fmt.Errorf("%w: the size is %d bytes instead of %d", ErrNotPatchable, len(from), h.FromSize)
	}
	if sum := digestOf(from); sum != h.FromSHA256 {
		return nil, fmt.Errorf("%w: the sha256 is %s instead of %s", ErrNotPatchable, sum, h.FromSHA256)
	}
	d, err := newDecoder(patch, zstd.WithDecoderDictRaw(patchDictionary, from))
	if err != nil {
		return nil, fmt.Errorf("apply a patch: %w", err)
	}
	return &contentReader{
		verifiedReader: newVerifiedReader(d, h.ToSize, h.ToSHA256),
		close:          func() error { d.Close(); return nil },
	}, nil
}

// ErrNotPatchable is returned if a patch was made for another old file: the complete new file must be sent.
var ErrNotPatchable = errors.New("the patch applies to another old file")

// ApplyPatch writes the new file created from an old file by a patch; see Apply for its errors.
func ApplyPatch(w io.Writer, from []byte, patch io.Reader) (PatchHeader, error) {
	header, err := ReadPatchHeader(patch)
	if err != nil {
		return PatchHeader{}, err
	}
	content, err := header.Apply(patch, from)
	if err != nil {
		return header, err
	}
	_, err = io.Copy(w, content)
	return header, errors.Join(err, content.Close())
}

func digestOf(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
