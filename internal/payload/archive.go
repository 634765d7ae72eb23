package payload

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// An archive is one zstd stream, so that what executables have in common is sent once. Inside it:
//
//	"WMCOPAY1"
//	for each file or patch: 'F', its sha256 (32 bytes), its size (8 bytes, big endian), its content
//	'E', the number of files (4 bytes, big endian)
const (
	archiveMagic = "WMCOPAY1"
	tagFile      = 'F'
	tagEnd       = 'E'
	fileHeader   = 1 + 32 + 8
)

const (
	// DefaultWindowBytes lets kubelet and kube-proxy share what they have in common; unpacking needs about that much
	// memory.
	DefaultWindowBytes = 64 << 20
	minWindowBytes     = 64 << 10
	maxWindowBytes     = 128 << 20
	maxFileBytes       = 4 << 30
)

// wireLevel is how hard the bytes that go to hosts are compressed: they are packed once and sent many times.
const wireLevel = zstd.SpeedBestCompression

// Pack writes an archive of the files and patches with the given digests and returns its size in bytes. The order of
// the digests and repetitions do not matter: the same set gives the same bytes.
func (p *Payload) Pack(w io.Writer, sums []string) (int64, error) {
	items, err := p.selectItems(sums)
	if err != nil {
		return 0, fmt.Errorf("pack the payload: %w", err)
	}
	counter := &countingWriter{w: w}
	encoder, err := zstd.NewWriter(counter, zstd.WithEncoderLevel(wireLevel),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(windowFor(items, p.manifest.WindowBytes)), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return 0, fmt.Errorf("pack the payload: %w", err)
	}
	err = writeArchive(encoder, items)
	if closeErr := encoder.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return counter.n, fmt.Errorf("pack the payload: %w", err)
	}
	return counter.n, nil
}

// item is a file or patch of an archive.
type item struct {
	name, sum string
	size      int64
	open      func() (io.ReadCloser, error)
}

// selectItems gives the named files, and then patches, in the manifest's order, each once.
func (p *Payload) selectItems(sums []string) ([]item, error) {
	wanted := make(map[string]bool, len(sums))
	for _, sum := range sums {
		wanted[sum] = true
	}
	items := make([]item, 0, len(wanted))
	for _, f := range p.manifest.files() {
		if wanted[f.SHA256] {
			items = append(items, item{f.Path, f.SHA256, f.Size, func() (io.ReadCloser, error) { return p.Open(f.SHA256) }})
			delete(wanted, f.SHA256)
		}
	}
	for _, patch := range p.manifest.Patches {
		if wanted[patch.SHA256] {
			items = append(items, item{"patch to " + patch.To, patch.SHA256, patch.Size, func() (io.ReadCloser, error) {
				return p.OpenPatch(patch)
			}})
			delete(wanted, patch.SHA256)
		}
	}
	for sum := range wanted {
		return nil, fmt.Errorf("the payload in %s has no file with sha256 %q", p.directory, sum)
	}
	return items, nil
}

// windowFor takes no larger window than the content can use: the receiver has to hold it in memory.
func windowFor(items []item, limit int64) int {
	if limit == 0 {
		limit = DefaultWindowBytes
	}
	total := int64(len(archiveMagic) + 5)
	for _, i := range items {
		total += fileHeader + i.size
	}
	window := int64(1) << bits.Len64(uint64(total-1))
	return int(min(max(window, minWindowBytes), limit))
}

func writeArchive(w io.Writer, items []item) error {
	if _, err := io.WriteString(w, archiveMagic); err != nil {
		return err
	}
	for _, i := range items {
		if err := i.write(w); err != nil {
			return fmt.Errorf("file %s: %w", i.name, err)
		}
	}
	_, err := w.Write(binary.BigEndian.AppendUint32([]byte{tagEnd}, uint32(len(items)))) //nolint:gosec // G115: files of one payload
	return err
}

func (i item) write(w io.Writer) error {
	digest, err := hex.DecodeString(i.sum)
	if err != nil {
		return err
	}
	header := append([]byte{tagFile}, digest...)
	if _, err := w.Write(binary.BigEndian.AppendUint64(header, uint64(i.size))); err != nil { //nolint:gosec // G115: no size is negative
		return err
	}
	content, err := i.open()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(w, content)
	return err
}

// Unpack reads an archive and hands each file to put. The content that put reads ends in io.EOF only if size and digest
// are right, and in ErrDamaged if not: put must keep nothing of a file whose content it could not read to its end. What
// put leaves unread is checked all the same. An archive that was cut off or changed gives ErrDamaged. Memory does not
// grow with the archive.
func Unpack(r io.Reader, put func(sum string, size int64, content io.Reader) error) error {
	decoder, err := newDecoder(r)
	if err != nil {
		return fmt.Errorf("unpack the payload: %w", err)
	}
	defer decoder.Close()
	u := unpacker{stream: bufio.NewReaderSize(decoder, 64<<10), put: put, seen: map[string]bool{}}
	if err := u.run(); err != nil {
		return fmt.Errorf("unpack the payload after %d whole files: %w", len(u.seen), err)
	}
	return nil
}

type unpacker struct {
	stream *bufio.Reader
	put    func(string, int64, io.Reader) error
	seen   map[string]bool
}

func (u *unpacker) run() error {
	magic := make([]byte, len(archiveMagic))
	if err := u.readFull(magic); err != nil {
		return err
	}
	if string(magic) != archiveMagic {
		return fmt.Errorf("%w: it is not a payload archive", ErrDamaged)
	}
	for {
		tag, err := u.stream.ReadByte()
		if err != nil {
			return cutOff(err)
		}
		switch tag {
		case tagFile:
			if err := u.file(); err != nil {
				return err
			}
		case tagEnd:
			return u.end()
		default:
			return fmt.Errorf("%w: expected a file or the end, got byte %#02x", ErrDamaged, tag)
		}
	}
}

func (u *unpacker) file() error {
	header := make([]byte, fileHeader-1)
	if err := u.readFull(header); err != nil {
		return err
	}
	sum := hex.EncodeToString(header[:32])
	size := binary.BigEndian.Uint64(header[32:])
	if size > maxFileBytes {
		return fmt.Errorf("%w: file %s is declared with %d bytes", ErrDamaged, sum, size)
	}
	if u.seen[sum] {
		return fmt.Errorf("%w: it contains file %s twice", ErrDamaged, sum)
	}
	content := newVerifiedReader(u.stream, int64(size), sum)
	if err := u.put(sum, int64(size), content); err != nil {
		return fmt.Errorf("file %s: %w", sum, err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return fmt.Errorf("file %s: %w", sum, err)
	}
	u.seen[sum] = true
	return nil
}

func (u *unpacker) end() error {
	count := make([]byte, 4)
	if err := u.readFull(count); err != nil {
		return err
	}
	if n := binary.BigEndian.Uint32(count); int64(n) != int64(len(u.seen)) {
		return fmt.Errorf("%w: it should contain %d files", ErrDamaged, n)
	}
	// Reading on to the end makes the decoder check the stream's own checksum.
	switch _, err := u.stream.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: data follows its end", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (u *unpacker) readFull(b []byte) error {
	_, err := io.ReadFull(u.stream, b)
	return cutOff(err)
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrDamaged)
	}
	return err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
