package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// Archive contains the files to send to a host, see Unpack. It is read from the store byte for byte, without
// compression and without a copy on disk or in memory.
type Archive struct {
	Size int64 // in bytes
	// Name is a digest that identifies the bytes of the archive, so that an interrupted transfer can be resumed.
	Name   string
	pieces []piece
}

type piece struct {
	end     int64 // offset of the end in the archive
	content io.ReaderAt
	size    int64
}

// Archive returns the archive of the files and patches with the given digests. Order and repetition of the digests do
// not matter. If only some files of a pack are requested, these files are added individually, or the complete pack if
// the files are stored only there. The caller must close the archive.
func (p *Payload) Archive(sums []string) (*Archive, error) {
	wanted := make(map[string]bool, len(sums))
	for _, sum := range sums {
		wanted[sum] = true
	}
	p.completePacks(wanted)
	a := &Archive{Name: p.archiveName(wanted)}
	if err := p.assembleArchive(a, wanted); err != nil {
		return nil, errors.Join(fmt.Errorf("read files from the payload in %s: %w", p.directory, err), a.Close())
	}
	return a, nil
}

// archiveName returns the digest of the manifest, which contains the digests of the packs, and of the requested
// digests.
func (p *Payload) archiveName(wanted map[string]bool) string {
	sorted := slices.Sorted(maps.Keys(wanted))
	digest := sha256.Sum256([]byte(p.digest + "\n" + strings.Join(sorted, "\n")))
	return hex.EncodeToString(digest[:])
}

func (p *Payload) assembleArchive(a *Archive, wanted map[string]bool) error {
	count := uint32(len(wanted)) //nolint:gosec // G115: files of one payload
	a.addFrame([]byte(archiveMagic))
	for _, pack := range p.manifest.Packs {
		if slices.ContainsFunc(pack.Files, func(sum string) bool { return !wanted[sum] }) {
			continue
		}
		if err := p.addPack(a, pack); err != nil {
			return fmt.Errorf("a pack of %d files: %w", len(pack.Files), err)
		}
		for _, sum := range pack.Files {
			delete(wanted, sum)
		}
	}
	for _, f := range p.manifest.sendableFiles() {
		if !wanted[f.SHA256] {
			continue
		}
		if err := p.addFile(a, f); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
		delete(wanted, f.SHA256)
	}
	for sum := range wanted {
		return fmt.Errorf("the payload has no file with sha256 %q", sum)
	}
	a.addFrame(binary.BigEndian.AppendUint32([]byte{tagEnd}, count))
	return nil
}

func (p *Payload) addPack(a *Archive, pack Pack) error {
	if err := p.verifyOnce(pack.SHA256, func() error { return p.verifyPack(pack) }); err != nil {
		return err
	}
	return a.addStored(p.packPath(pack))
}

func (p *Payload) addFile(a *Archive, f File) error {
	if agent, err := p.Agent(); err == nil && agent.SHA256 == f.SHA256 {
		return errors.New("the file is the agent, which is sent before all archives: no other component may contain it")
	}
	header, err := entryHeader(f.SHA256, f.Size)
	if err != nil {
		return err
	}
	a.addFrame(header)
	if f.Size < minCompressedBytes {
		content, err := p.readContent(f)
		if len(content) > 0 {
			a.addFrame(content)
		}
		return err
	}
	if err := p.verifyOnce(f.SHA256, func() error { return p.verifyFile(f) }); err != nil {
		return err
	}
	err = a.addStored(p.storePath(f.SHA256) + zstdSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return a.addUncompressed(p.storePath(f.SHA256)) // the file was added manually
	}
	return err
}

// verifyOnce verifies content to be sent against its digest, once. Each host verifies the content too, but cannot
// determine that the content was already damaged in the store.
func (p *Payload) verifyOnce(sum string, verify func() error) error {
	p.verifiedMu.Lock()
	defer p.verifiedMu.Unlock()
	if p.verified[sum] {
		return nil
	}
	if err := verify(); err != nil {
		return fmt.Errorf("%w; build the payload again with `make payload`", err)
	}
	p.verified[sum] = true
	return nil
}

func (a *Archive) addStored(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	a.addPiece(&storedFile{path: path}, info.Size())
	return nil
}

// addUncompressed adds a file that is stored uncompressed. The frame has only uncompressed blocks (RFC 8878).
func (a *Archive) addUncompressed(path string) error {
	const window, largestBlock = 7 << 3, 128 << 10 // the window is as large as a block
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	header, content := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}, &storedFile{path: path}
	for at := int64(0); at < info.Size(); at += largestBlock {
		n := min(info.Size()-at, largestBlock)
		block := uint32(n) << 3 //nolint:gosec // G115: n is small
		if at+n == info.Size() {
			block |= 1
		}
		header = append(header, byte(block), byte(block>>8), byte(block>>16)) //nolint:gosec // G115: the lowest byte is wanted
		a.addPiece(bytes.NewReader(header), int64(len(header)))
		a.addPiece(&storedPart{content, at}, n)
		header = nil
	}
	return nil
}

// storedFile is a file of the store, opened on first read because an archive may wait for a long time.
type storedFile struct {
	path string

	mu     sync.Mutex
	file   *os.File
	closed bool
}

// ReadAt implements io.ReaderAt.
func (s *storedFile) ReadAt(b []byte, offset int64) (int, error) {
	file, err := s.openOnce()
	if err != nil {
		return 0, err
	}
	return file.ReadAt(b, offset)
}

func (s *storedFile) openOnce() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	if s.file != nil {
		return s.file, nil
	}
	var err error
	s.file, err = os.Open(s.path)
	return s.file, err
}

// Close implements io.Closer.
func (s *storedFile) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// storedPart is the part of a file from an offset on.
type storedPart struct {
	*storedFile
	begin int64
}

// ReadAt implements io.ReaderAt.
func (s *storedPart) ReadAt(b []byte, offset int64) (int, error) {
	return s.storedFile.ReadAt(b, s.begin+offset)
}

// addFrame adds at most 255 bytes as a separate frame with one uncompressed block (RFC 8878).
func (a *Archive) addFrame(content []byte) {
	const singleSegment, lastBlock = 1 << 5, 1
	n := len(content)
	frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, singleSegment, byte(n), byte(n<<3 | lastBlock), byte(n >> 5), 0}, content...) //nolint:gosec // G115: n is small
	a.addPiece(bytes.NewReader(frame), int64(len(frame)))
}

func (a *Archive) addPiece(content io.ReaderAt, size int64) {
	a.Size += size
	a.pieces = append(a.pieces, piece{end: a.Size, content: content, size: size})
}

// Reader returns a reader of the archive from its beginning. Readers are independent of each other.
func (a *Archive) Reader() *io.SectionReader { return io.NewSectionReader(a, 0, a.Size) }

// ReadAt implements io.ReaderAt.
func (a *Archive) ReadAt(b []byte, offset int64) (int, error) {
	done := 0
	for _, piece := range a.pieces {
		at := offset + int64(done)
		if at >= piece.end || done == len(b) {
			continue
		}
		part := b[done:min(int64(len(b)), int64(done)+piece.end-at)]
		n, err := piece.content.ReadAt(part, at-(piece.end-piece.size))
		done += n
		if n < len(part) {
			return done, fmt.Errorf("the payload was changed while it was read: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
	if done < len(b) {
		return done, io.EOF
	}
	return done, nil
}

// Close closes the files of the store.
func (a *Archive) Close() error {
	var faults []error
	for _, piece := range a.pieces {
		if closer, ok := piece.content.(io.Closer); ok {
			faults = append(faults, closer.Close())
		}
	}
	return errors.Join(faults...)
}
