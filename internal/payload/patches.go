package payload

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Patches returns the patches that create a file of this payload from other files, ordered by size.
func (p *Payload) Patches(to string) []Patch { return slices.Clone(p.patches[to]) }

// asFile returns the patch as a file of the store.
func (p Patch) asFile() File { return File{Path: "patch to " + p.To, Size: p.Size, SHA256: p.SHA256} }

// patchesByTarget returns the matching patches of the manifest by the digest of the new file, ordered by size.
func (m Manifest) patchesByTarget(holds func(Patch) bool) map[string][]Patch {
	patches := map[string][]Patch{}
	for _, patch := range m.Patches {
		if holds(patch) {
			patches[patch.To] = append(patches[patch.To], patch)
		}
	}
	for _, list := range patches {
		slices.SortStableFunc(list, func(a, b Patch) int { return cmp.Compare(a.Size, b.Size) })
	}
	return patches
}

// writePatches creates patches from the files of earlier payloads to changed files of this payload if the patch is
// smaller than the compressed file.
func (p *Payload) writePatches(earlier []*Payload) ([]Patch, error) {
	var patches []Patch
	made := map[Patch]bool{}
	for _, old := range earlier {
		for _, change := range changedFiles(old.manifest, p.manifest) {
			ends := Patch{From: change.from.SHA256, To: change.to.SHA256}
			if made[ends] {
				continue
			}
			made[ends] = true
			patch, err := p.writePatch(old, change)
			if err != nil {
				return nil, fmt.Errorf("patch from %s to %s: %w", change.from.SHA256, change.to.SHA256, err)
			}
			if patch != nil {
				patches = append(patches, *patch)
			}
		}
	}
	return patches, nil
}

type change struct{ from, to File }

// changedFiles returns pairs of files with the same component, minor version and path but different content, unless the earlier
// payload contains the new content elsewhere.
func changedFiles(earlier, now Manifest) []change {
	known := map[string]bool{}
	for _, f := range earlier.distinctFiles() {
		known[f.SHA256] = true
	}
	var list []change
	for _, c := range now.Components {
		old, ok := earlier.counterpart(c)
		if !ok {
			continue
		}
		for _, to := range c.Files {
			i := slices.IndexFunc(old.Files, func(f File) bool { return f.Path == to.Path })
			if i >= 0 && !known[to.SHA256] && old.Files[i].Size > 0 && to.Size > 0 {
				list = append(list, change{from: old.Files[i], to: to})
			}
		}
	}
	return list
}

// writePatch returns nil if the patch is not smaller than the compressed file.
func (p *Payload) writePatch(old *Payload, c change) (*Patch, error) {
	from, err := old.readContent(c.from)
	if err != nil {
		return nil, err
	}
	to, err := p.readContent(c.to)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := CreatePatch(&data, from, to); err != nil {
		return nil, err
	}
	if compressed, err := p.compressedSize(to); err != nil || int64(data.Len()) >= compressed {
		return nil, err
	}
	// An inapplicable patch must never be sent: a slow build is better than a second transfer to each host.
	if _, err := ApplyPatch(io.Discard, from, bytes.NewReader(data.Bytes())); err != nil {
		return nil, err
	}
	patch := &Patch{From: c.from.SHA256, To: c.to.SHA256, Size: int64(data.Len()), SHA256: digestOf(data.Bytes())}
	_, err = p.storeFile(patch.asFile().Path, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data.Bytes())), nil
	}, true)
	return patch, err
}

func (p *Payload) readContent(f File) ([]byte, error) {
	r, err := p.Open(f.SHA256)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// compressedSize returns the size of the content when compressed separately.
func (p *Payload) compressedSize(content []byte) (int64, error) {
	counter := &countingWriter{w: io.Discard}
	err := p.compressTo(counter, bytes.NewReader(content), int64(len(content)))
	return counter.n, err
}
