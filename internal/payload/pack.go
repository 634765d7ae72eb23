package payload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// wireLevel is the compression level of sent content, which is compressed once and sent many times.
const wireLevel = zstd.SpeedBestCompression

// writePacks packs the files for hosts of every platform, so that common content is sent once: one pack for all
// clusters, and one for each minor version of Kubernetes. The agent is excluded: it is sent uncompressed before all
// archives.
func (p *Payload) writePacks() ([]Pack, error) {
	var groups []string
	files, uses := map[string][]File{}, map[string]int{}
	for _, c := range p.manifest.Components {
		if len(c.Platforms) > 0 || c.Name == ComponentAgent {
			continue
		}
		group := strings.Join(c.Minors, " ")
		if files[group] == nil {
			groups = append(groups, group)
		}
		files[group] = append(files[group], c.Files...)
		for _, f := range c.Files {
			uses[f.SHA256]++
		}
	}
	var packs []Pack
	packed := map[string]bool{}
	for _, group := range groups {
		packedFiles := slices.DeleteFunc(files[group], func(f File) bool {
			again := packed[f.SHA256]
			packed[f.SHA256] = true
			return again || uses[f.SHA256] > 1 && group != "" // a host does not need the pack of another version
		})
		if len(packedFiles) < 2 {
			continue
		}
		pack, err := p.writePack(packedFiles)
		if err != nil {
			return nil, err
		}
		packs = append(packs, pack)
	}
	return packs, nil
}

func (p *Payload) writePack(files []File) (Pack, error) {
	pack := Pack{}
	for _, f := range files {
		pack.Files = append(pack.Files, f.SHA256)
	}
	// The final name contains the digest of the content, which is known only after writing.
	path := filepath.Join(p.directory, storeName, "new"+packSuffix)
	digest, counter := sha256.New(), &countingWriter{}
	err := writeFile(path, func(w io.Writer) error {
		counter.w = io.MultiWriter(w, digest)
		return p.writePackContent(counter, files)
	})
	if err != nil {
		return Pack{}, err
	}
	pack.Size, pack.SHA256 = counter.n, hex.EncodeToString(digest.Sum(nil))
	return pack, os.Rename(path, p.packPath(pack))
}

// removePacked removes the files of packs for some minor versions of Kubernetes from the store: with each minor version
// an image would otherwise contain a kubelet twice. A host of such a cluster mostly needs the complete pack.
func (p *Payload) removePacked() error {
	for _, pack := range p.manifest.Packs {
		if !p.manifest.isForMinors(pack) {
			continue
		}
		for _, sum := range pack.Files {
			for _, suffix := range []string{"", zstdSuffix} {
				if err := os.Remove(p.storePath(sum) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

// isForMinors reports whether the files of a pack are for some minor versions of Kubernetes only.
func (m Manifest) isForMinors(pack Pack) bool {
	for _, c := range m.Components {
		if len(c.Minors) == 0 && slices.ContainsFunc(c.Files, func(f File) bool { return slices.Contains(pack.Files, f.SHA256) }) {
			return false
		}
	}
	return true
}

// packOf returns the pack for some minor versions of Kubernetes that contains a file.
func (p *Payload) packOf(sum string) (Pack, bool) {
	i := slices.IndexFunc(p.manifest.Packs, func(pack Pack) bool {
		return slices.Contains(pack.Files, sum) && p.manifest.isForMinors(pack)
	})
	if i < 0 {
		return Pack{}, false
	}
	return p.manifest.Packs[i], true
}

// completePacks adds the other files of a pack to the digests of files that are stored only in the pack, and removes
// patches to these files.
func (p *Payload) completePacks(wanted map[string]bool) {
	for _, pack := range p.manifest.Packs {
		if slices.ContainsFunc(pack.Files, func(sum string) bool { return wanted[sum] && p.isStoredPacked(sum) }) {
			for _, sum := range pack.Files {
				wanted[sum] = true
			}
		}
	}
	for _, patch := range p.manifest.Patches { // a patch to a complete file is not needed
		if wanted[patch.To] {
			delete(wanted, patch.SHA256)
		}
	}
}

// isStoredPacked reports whether a file is stored only in a pack.
func (p *Payload) isStoredPacked(sum string) bool {
	if _, packed := p.packOf(sum); !packed {
		return false
	}
	file, _, err := p.openStored(sum)
	if err == nil {
		file.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// openPacked opens a file that is stored only in a pack.
func (p *Payload) openPacked(pack Pack, f File) (io.ReadCloser, error) {
	file, err := os.Open(p.packPath(pack))
	if err != nil {
		return nil, fmt.Errorf("read payload file %s: %w", f.Path, err)
	}
	decoder, err := newDecoder(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("read payload file %s: %w", f.Path, err)
	}
	closeAll := func() error { decoder.Close(); return file.Close() }
	for _, sum := range pack.Files {
		skip := int64(fileHeader)
		if sum != f.SHA256 {
			skip += p.bySum[sum].Size
		}
		if _, err := io.CopyN(io.Discard, decoder, skip); err != nil {
			return nil, errors.Join(fmt.Errorf("read payload file %s: %w", f.Path, convertEOF(err)), closeAll())
		}
		if sum == f.SHA256 {
			break
		}
	}
	return &packedReader{newVerifiedReader(decoder, f.Size, f.SHA256), closeAll}, nil
}

// packedReader reads one file of a pack. More files may follow.
type packedReader struct {
	*verifiedReader
	close func() error
}

func (r *packedReader) Close() error { return r.close() }

func (p *Payload) packPath(pack Pack) string { return p.storePath(pack.SHA256) + packSuffix }

// writePackContent writes the files as one frame of an archive.
func (p *Payload) writePackContent(w io.Writer, files []File) error {
	total := int64(0)
	for _, f := range files {
		total += fileHeader + f.Size
	}
	encoder, err := zstd.NewWriter(w, zstd.WithEncoderLevel(wireLevel), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(windowFor(total, p.manifest.WindowBytes)), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := p.writeEntry(encoder, f); err != nil {
			encoder.Close()
			return err
		}
	}
	return encoder.Close()
}

func (p *Payload) writeEntry(w io.Writer, f File) error {
	header, err := entryHeader(f.SHA256, f.Size)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	content, err := p.Open(f.SHA256)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(w, content)
	return err
}

// entryHeader returns the header of a file or patch in an archive.
func entryHeader(sum string, size int64) ([]byte, error) {
	digest, err := hex.DecodeString(sum)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(append([]byte{tagFile}, digest...), uint64(size)), nil //nolint:gosec // G115: no size is negative
}

// windowFor returns a window size that does not exceed the content, because the receiver holds the window in memory.
func windowFor(content, limit int64) int {
	if limit == 0 {
		limit = DefaultWindowBytes
	}
	window := int64(1) << bits.Len64(uint64(max(content, 1)-1))
	return int(min(max(window, minWindowBytes), limit))
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
