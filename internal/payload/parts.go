package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// Parts are the files of a payload, by slash-separated names relative to the payload directory.
type Parts struct {
	Manifest string
	// Components are the files of each component, by Component.String. A file of several components is listed with the
	// first one only.
	Components map[string][]string
	Patches    []string
	Packs      []string
}

// Directory returns the payload directory.
func (p *Payload) Directory() string { return p.directory }

// Parts returns the files of the payload, for copying. Any other files in the directory are unused.
func (p *Payload) Parts() (Parts, error) {
	parts := Parts{Manifest: ManifestName, Components: map[string][]string{}}
	seen := map[string]bool{}
	for _, c := range p.manifest.Components {
		if p.IsIncomplete(c) {
			continue
		}
		for _, f := range c.Files {
			if seen[f.SHA256] {
				continue
			}
			seen[f.SHA256] = true
			if p.isStoredPacked(f.SHA256) {
				continue
			}
			name, err := p.storedName(f.SHA256)
			if err != nil {
				return Parts{}, fmt.Errorf("component %s: file %s: %w", c.Name, f.Path, err)
			}
			parts.Components[c.String()] = append(parts.Components[c.String()], name)
		}
	}
	for _, patch := range p.manifest.Patches {
		if name, err := p.storedName(patch.SHA256); err == nil {
			parts.Patches = append(parts.Patches, name)
		}
	}
	for _, pack := range p.manifest.Packs {
		parts.Packs = append(parts.Packs, path.Join(storeName, pack.SHA256+packSuffix))
	}
	return parts, nil
}

func (p *Payload) storedName(sum string) (string, error) {
	file, compressed, err := p.openStored(sum)
	if err != nil {
		return "", err
	}
	if compressed {
		sum += zstdSuffix
	}
	return path.Join(storeName, sum), file.Close()
}

// Verify reads all files, patches and packs of the payload and verifies their digests.
func (p *Payload) Verify() error {
	for _, c := range p.manifest.Components {
		if p.IsIncomplete(c) {
			continue
		}
		for _, f := range c.Files {
			if err := p.verifyFile(f); err != nil {
				return fmt.Errorf("component %s: file %s: %w; build the payload again", c.Name, f.Path, err)
			}
		}
	}
	for _, patch := range p.manifest.Patches {
		// Without the patch, hosts receive the complete file.
		if err := p.verifyFile(patch.asFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("patch from %s to %s: %w; build the payload again", patch.From, patch.To, err)
		}
	}
	for _, pack := range p.manifest.Packs {
		if err := p.verifyPack(pack); err != nil {
			return fmt.Errorf("a pack of %d files: %w; build the payload again", len(pack.Files), err)
		}
	}
	return nil
}

func (p *Payload) verifyFile(f File) error {
	content, err := p.openFile(f)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return errors.Join(err, content.Close())
}

func (p *Payload) verifyPack(pack Pack) error {
	file, err := os.Open(p.packPath(pack))
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != pack.SHA256 {
		return fmt.Errorf("%w: content has sha256 %s, expected %s", ErrDamaged, got, pack.SHA256)
	}
	return nil
}
