package payload

import (
	"fmt"
	"os"
	"slices"
)

// ArchiveSize returns the approximate size in bytes of the archive of the files and patches with the given digests.
// The content is neither read nor verified: packs have the size listed in the manifest, and files have their size in
// the store.
func (p *Payload) ArchiveSize(sums []string) (int64, error) {
	wanted := make(map[string]bool, len(sums))
	for _, sum := range sums {
		wanted[sum] = true
	}
	p.completePacks(wanted)
	size := int64(0)
	for _, pack := range p.manifest.Packs {
		if slices.ContainsFunc(pack.Files, func(sum string) bool { return !wanted[sum] }) {
			continue
		}
		size += pack.Size
		for _, sum := range pack.Files {
			delete(wanted, sum)
		}
	}
	for sum := range wanted {
		file, has := p.bySum[sum]
		if !has {
			return 0, fmt.Errorf("the payload in %s has no file with sha256 %q", p.directory, sum)
		}
		size += p.storedSize(file)
	}
	return size, nil
}

// storedSize returns the size in bytes of a file or patch in the store, usually compressed.
func (p *Payload) storedSize(f File) int64 {
	for _, suffix := range []string{zstdSuffix, ""} {
		if info, err := os.Stat(p.storePath(f.SHA256) + suffix); err == nil {
			return info.Size()
		}
	}
	return f.Size
}
