package payload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// ManifestName is the name of the manifest in a payload directory.
const ManifestName = "manifest.json"

const (
	storeName = "store"
	// zstdSuffix marks a compressed file or patch of the store, as sent to hosts. The agent, which is sent
	// uncompressed, and files that are too small to compress are stored uncompressed.
	zstdSuffix = ".zst"
	// minCompressedBytes is the minimum size of compressed files in bytes: the frame of a smaller file does not contain
	// the content size.
	minCompressedBytes = 256
	// packSuffix marks a pack, which is stored under its own digest.
	packSuffix = ".pack"
)

// ErrDamaged is returned if content is truncated or modified: it does not match its digest, its size or the archive
// format.
var ErrDamaged = errors.New("the payload is damaged")

// Payload is a payload in a directory: manifest.json, store/<sha256> or store/<sha256>.zst for each file and patch,
// and store/<sha256>.pack for each pack. Files for some minor versions of Kubernetes are stored only in their pack.
type Payload struct {
	directory string
	digest    string // of the manifest
	manifest  Manifest
	bySum     map[string]File // files and patches
	gaps      []Gap
	patches   map[string][]Patch // by the digest of the new file, ordered by size

	verifiedMu sync.Mutex
	verified   map[string]bool // by the digest of verified content
}

// Load reads the manifest in a directory and checks that the store contains all files of all required components with
// the correct size. The content is verified against its digest on each read.
func Load(directory string) (*Payload, error) {
	data, err := os.ReadFile(filepath.Join(directory, ManifestName)) //nolint:gosec // G304: the folder is the operator's own setting
	if err != nil {
		return nil, fmt.Errorf("load the payload: %w; use a directory written by the payload build", err)
	}
	manifest, err := ParseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("load the payload from %s: %w", directory, err)
	}
	p := &Payload{directory: directory, digest: digestOf(data), manifest: manifest, bySum: map[string]File{},
		verified: map[string]bool{}}
	for _, f := range manifest.sendableFiles() {
		p.bySum[f.SHA256] = f
	}
	faults := p.checkPacks()
	for _, c := range manifest.Components {
		if err := p.checkComponent(c); err != nil {
			p.gaps = append(p.gaps, Gap{c.Name, c.Minors, err})
			if c.Required {
				faults = append(faults, err)
			}
		}
	}
	for _, a := range manifest.Absent {
		p.gaps = append(p.gaps, Gap{a.Name, a.Minors, fmt.Errorf("the payload has no component %s: %s",
			describeComponent(a.Name, a.Minors), a.Reason)})
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("load the payload from %s: %w", directory, errors.Join(faults...))
	}
	// Without a complete patch, the file itself is sent.
	p.patches = manifest.patchesByTarget(func(patch Patch) bool { return p.checkFile(patch.asFile()) == nil })
	return p, nil
}

// Manifest returns the manifest of the payload.
func (p *Payload) Manifest() Manifest { return p.manifest }

// Gap is a component that cannot be installed: it is not in the payload, or it is optional and incomplete.
type Gap struct {
	Name   string
	Minors []string // Component.Minors
	Reason error
}

// Missing returns the reason why a component cannot be installed on hosts with a minor version of Kubernetes. It returns
// nil if the component can be installed.
func (p *Payload) Missing(component, kubernetes string) error {
	for _, gap := range p.gaps {
		if gap.Name == component && isForMinor(gap.Minors, kubernetes) {
			return gap.Reason
		}
	}
	return nil
}

// IsIncomplete reports whether an optional component of the manifest lacks files.
func (p *Payload) IsIncomplete(c Component) bool {
	return slices.ContainsFunc(p.gaps, func(g Gap) bool { return g.Name == c.Name && slices.Equal(g.Minors, c.Minors) })
}

// Gaps returns the components that cannot be installed: first the incomplete components, in manifest order.
func (p *Payload) Gaps() []Gap { return p.gaps }

// Components returns the components for the hosts of a cluster, including the agent, in manifest order. Incomplete
// optional components are omitted.
func (p *Payload) Components(target Target) []Component {
	var components []Component
	for _, c := range p.manifest.Components {
		if c.IsFor(target) && !p.IsIncomplete(c) {
			components = append(components, c)
		}
	}
	return components
}

// Agent returns the agent executable.
func (p *Payload) Agent() (File, error) {
	c, ok := p.manifest.Component(ComponentAgent)
	if !ok {
		return File{}, fmt.Errorf("the payload in %s has no component %q: build the payload again", p.directory, ComponentAgent)
	}
	if err := p.Missing(ComponentAgent, ""); err != nil {
		return File{}, err
	}
	return c.Files[0], nil
}

// OpenAgent opens the agent executable. The content is verified against its digest only before the first read,
// because hundreds of hosts receive the same file. The caller must close the reader.
func (p *Payload) OpenAgent() (io.ReadCloser, error) {
	f, err := p.Agent()
	if err != nil {
		return nil, err
	}
	if err := p.verifyOnce(f.SHA256, func() error { return p.verifyFile(f) }); err != nil {
		return nil, err
	}
	file, compressed, err := p.openStored(f.SHA256)
	if err != nil {
		return nil, fmt.Errorf("read payload file %s: %w", f.Path, err)
	}
	if !compressed {
		return file, nil
	}
	return p.Open(f.SHA256) // added manually in compressed form
}

func (p *Payload) checkComponent(c Component) error {
	var faults []error
	for _, f := range c.Files {
		if err := p.checkFile(f); err != nil {
			faults = append(faults,
				fmt.Errorf("component %s: file %s: %w; build the payload again, or copy the file to %s",
					c, f.Path, err, p.storePath(f.SHA256)))
		}
	}
	return errors.Join(faults...)
}

// checkPacks compares only sizes: content is verified before sending. A fault of a pack for some minor versions of
// Kubernetes is a fault of its components, which checkComponent returns.
func (p *Payload) checkPacks() []error {
	var faults []error
	for _, pack := range p.manifest.Packs {
		if err := p.checkPack(pack); err != nil && !p.manifest.isForMinors(pack) {
			faults = append(faults, fmt.Errorf("a pack of %d files: %w; build the payload again with `make payload`",
				len(pack.Files), err))
		}
	}
	return faults
}

func (p *Payload) checkPack(pack Pack) error {
	info, err := os.Stat(p.packPath(pack))
	if err == nil && info.Size() != pack.Size {
		err = fmt.Errorf("%w: the size is %d bytes, but the manifest lists %d", ErrDamaged, info.Size(), pack.Size)
	}
	return err
}

// checkFile compares only sizes: content is verified when it is read.
func (p *Payload) checkFile(f File) error {
	file, compressed, err := p.openStored(f.SHA256)
	if pack, packed := p.packOf(f.SHA256); packed && errors.Is(err, fs.ErrNotExist) {
		return p.checkPack(pack)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	size := int64(0)
	if compressed {
		size, err = frameContentSize(file)
	} else {
		var info os.FileInfo
		if info, err = file.Stat(); err == nil {
			size = info.Size()
		}
	}
	if err != nil {
		return err
	}
	if size != f.Size {
		return fmt.Errorf("%w: the size is %d bytes, but the manifest lists %d", ErrDamaged, size, f.Size)
	}
	return nil
}

func frameContentSize(r io.Reader) (int64, error) {
	start := make([]byte, zstd.HeaderMaxSize)
	n, err := io.ReadFull(r, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var header zstd.Header
	if err := header.Decode(start[:n]); err != nil {
		return 0, fmt.Errorf("%w: not a zstd file: %w", ErrDamaged, err)
	}
	if !header.HasFCS {
		return 0, fmt.Errorf("%w: the zstd header does not contain the content size", ErrDamaged)
	}
	if header.FrameContentSize > math.MaxInt64 {
		return 0, fmt.Errorf("%w: the zstd header declares a content size of %d bytes", ErrDamaged, header.FrameContentSize)
	}
	return int64(header.FrameContentSize), nil
}

func (p *Payload) storePath(sum string) string { return filepath.Join(p.directory, storeName, sum) }

func (p *Payload) openStored(sum string) (file *os.File, compressed bool, err error) {
	path := p.storePath(sum)
	if file, err = os.Open(path + zstdSuffix); err == nil { //nolint:gosec // G304: named by a digest of the manifest, whose form is checked
		return file, true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	if file, err = os.Open(path); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // G304: as above
		return nil, false, fmt.Errorf("not in the store: %w", err)
	}
	return file, false, err
}

// Open opens a file of the payload. If the content does not match its digest, the last Read returns ErrDamaged
// instead of io.EOF. The caller must close the reader.
func (p *Payload) Open(sum string) (io.ReadCloser, error) {
	f, known := p.bySum[sum]
	if !known {
		return nil, fmt.Errorf("the payload in %s has no file with sha256 %s", p.directory, sum)
	}
	return p.openFile(f)
}

func (p *Payload) openFile(f File) (io.ReadCloser, error) {
	file, compressed, err := p.openStored(f.SHA256)
	if pack, packed := p.packOf(f.SHA256); packed && errors.Is(err, fs.ErrNotExist) {
		return p.openPacked(pack, f)
	}
	if err != nil {
		return nil, fmt.Errorf("read payload file %s: %w", f.Path, err)
	}
	var source io.Reader = file
	closeAll := file.Close
	if compressed {
		decoder, err := newDecoder(file)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("read payload file %s: %w", f.Path, err)
		}
		source = decoder
		closeAll = func() error { decoder.Close(); return file.Close() }
	}
	return &contentReader{verifiedReader: newVerifiedReader(source, f.Size, f.SHA256), close: closeAll}, nil
}

// StoredBytes returns the total size of all files, patches and packs as stored.
func (p *Payload) StoredBytes() (int64, error) {
	entries, err := os.ReadDir(filepath.Join(p.directory, storeName))
	if err != nil {
		return 0, fmt.Errorf("compute the size of the payload's store: %w", err)
	}
	total := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return 0, fmt.Errorf("compute the size of the payload's store: %w", err)
		}
		total += info.Size()
	}
	return total, nil
}

// Prune deletes the files, patches and packs of earlier builds that the manifest does not list from the store of a
// payload.
func Prune(directory string) error {
	p, err := Load(directory)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for sum := range p.bySum {
		named[sum], named[sum+zstdSuffix] = true, true
	}
	for _, pack := range p.manifest.Packs {
		named[pack.SHA256+packSuffix] = true
	}
	store := filepath.Join(directory, storeName)
	entries, err := os.ReadDir(store)
	if err != nil {
		return fmt.Errorf("prune the payload's store: %w", err)
	}
	for _, entry := range entries {
		if !named[entry.Name()] {
			if err := os.Remove(filepath.Join(store, entry.Name())); err != nil {
				return fmt.Errorf("prune the payload's store: %w", err)
			}
		}
	}
	return nil
}
