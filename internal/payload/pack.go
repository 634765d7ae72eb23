package payload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/bits"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// wireLevel is the compression level of sent content, which is compressed once and sent many times.
const wireLevel = zstd.SpeedBestCompression

// writePacks packs the files for hosts of every platform, so that common content is sent once. The agent is excluded:
// it is sent uncompressed before all archives.
func (p *Payload) writePacks() ([]Pack, error) {
	var files []File
	for _, f := range p.manifest.distinctFiles() {
		if p.isForEveryPlatform(f.SHA256) {
			files = append(files, f)
		}
	}
	if len(files) < 2 {
		return nil, nil
	}
	pack := Pack{}
	for _, f := range files {
		pack.Files = append(pack.Files, f.SHA256)
	}
	// The final name contains the digest of the content, which is known only after writing.
	path := filepath.Join(p.directory, storeName, "new"+packSuffix)
	digest, counter := sha256.New(), &countingWriter{}
	err := writeFile(path, func(w io.Writer) error {
		counter.w = io.MultiWriter(w, digest)
		return p.writePack(counter, files)
	})
	if err != nil {
		return nil, err
	}
	pack.Size, pack.SHA256 = counter.n, hex.EncodeToString(digest.Sum(nil))
	return []Pack{pack}, os.Rename(path, p.packPath(pack))
}

// isForEveryPlatform reports whether the file belongs to a component for hosts of all platforms, other than the agent.
func (p *Payload) isForEveryPlatform(sum string) bool {
	for _, c := range p.manifest.Components {
		if len(c.Platforms) > 0 || c.Name == ComponentAgent {
			continue
		}
		for _, f := range c.Files {
			if f.SHA256 == sum {
				return true
			}
		}
	}
	return false
}

func (p *Payload) packPath(pack Pack) string { return p.storePath(pack.SHA256) + packSuffix }

// writePack writes the files as one frame of an archive.
func (p *Payload) writePack(w io.Writer, files []File) error {
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
