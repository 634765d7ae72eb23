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

// Parts are the files of a payload's folder, by names that are relative to it, with slashes.
type Parts struct {
	Manifest string
	// Components are the files of each component. A file of two components is with the first.
	Components map[string][]string
	Patches    []string
}

// Directory returns the payload's folder.
func (p *Payload) Directory() string { return p.directory }

// Parts returns the files that the payload consists of, for those who copy it. Others in the folder are not in use.
func (p *Payload) Parts() (Parts, error) {
	parts := Parts{Manifest: manifestName, Components: map[string][]string{}}
	seen := map[string]bool{}
	for _, c := range p.manifest.Components {
		if p.missing[c.Name] != nil {
			continue
		}
		for _, f := range c.Files {
			if seen[f.SHA256] {
				continue
			}
			seen[f.SHA256] = true
			name, err := p.storedName(f.SHA256)
			if err != nil {
				return Parts{}, fmt.Errorf("component %s: file %s: %w", c.Name, f.Path, err)
			}
			parts.Components[c.Name] = append(parts.Components[c.Name], name)
		}
	}
	for _, patch := range p.manifest.Patches {
		name := path.Join(storeName, patch.SHA256+patchSuffix)
		if _, err := os.Stat(p.patchPath(patch)); err == nil {
			parts.Patches = append(parts.Patches, name)
		}
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

// Verify reads all files and patches of the payload, and compares them with their digests.
func (p *Payload) Verify() error {
	for _, c := range p.manifest.Components {
		if p.missing[c.Name] != nil {
			continue
		}
		for _, f := range c.Files {
			if err := p.verify(f); err != nil {
				return fmt.Errorf("component %s: file %s: %w; build the payload again", c.Name, f.Path, err)
			}
		}
	}
	for _, patch := range p.manifest.Patches {
		if err := p.verifyPatch(patch); err != nil {
			return fmt.Errorf("patch from %s to %s: %w; build the payload again", patch.From, patch.To, err)
		}
	}
	return nil
}

func (p *Payload) verify(f File) error {
	content, err := p.Open(f.SHA256)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return errors.Join(err, content.Close())
}

func (p *Payload) verifyPatch(patch Patch) error {
	file, err := os.Open(p.patchPath(patch))
	if errors.Is(err, os.ErrNotExist) {
		return nil // hosts get the whole file
	}
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != patch.SHA256 {
		return fmt.Errorf("%w: content has sha256 %s, expected %s", ErrDamaged, got, patch.SHA256)
	}
	return nil
}
