package payload

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"
)

// keptArchives bounds the disk that archives take: what a host says it has decides which set it is sent, and a host is
// not trusted to choose how much the operator stores.
const keptArchives = 8

// Packer packs each set of files once, however many hosts need it.
type Packer struct {
	payload   *Payload
	directory string
	flights   singleflight.Group
	packing   chan struct{} // holds one token: packing takes memory

	mu     sync.Mutex
	recent *list.List // of *Archive, the latest used first
}

// Archive is a packed set of files. It stays readable for whoever holds it.
type Archive struct {
	Size   int64  // in bytes
	SHA256 string // of the archive itself
	set    string
	file   *os.File
}

// Reader reads the archive from its beginning. Readers do not disturb one another.
func (a *Archive) Reader() *io.SectionReader { return io.NewSectionReader(a.file, 0, a.Size) }

// NewPacker keeps archives in a folder of its own below directory, which is made if need be.
func NewPacker(p *Payload, directory string) (*Packer, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("keep payload archives: %w", err)
	}
	return &Packer{payload: p, directory: directory, packing: make(chan struct{}, 1), recent: list.New()}, nil
}

// Packed returns the archive of the files with the given digests; see Payload.Pack. Callers that need the same set at
// the same time wait for one packing, each at most as long as its context lasts.
func (k *Packer) Packed(ctx context.Context, sums []string) (*Archive, error) {
	set := setDigest(sums)
	if archive := k.kept(set); archive != nil {
		return archive, nil
	}
	result := k.flights.DoChan(set, func() (any, error) {
		if archive := k.kept(set); archive != nil {
			return archive, nil
		}
		k.packing <- struct{}{}
		defer func() { <-k.packing }()
		archive, err := k.pack(set, sums)
		if err == nil {
			k.keep(archive)
		}
		return archive, err
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("pack %d payload files: %w", len(sums), ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		archive, ok := r.Val.(*Archive)
		if !ok {
			return nil, fmt.Errorf("pack %d payload files: got %T", len(sums), r.Val)
		}
		return archive, nil
	}
}

func setDigest(sums []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(sums)))
	digest := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return hex.EncodeToString(digest[:])
}

func (k *Packer) kept(set string) *Archive {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.recent.Front(); e != nil; e = e.Next() {
		if archive, ok := e.Value.(*Archive); ok && archive.set == set {
			k.recent.MoveToFront(e)
			return archive
		}
	}
	return nil
}

func (k *Packer) keep(archive *Archive) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent.PushFront(archive)
	for k.recent.Len() > keptArchives {
		// The file has no name any more: its room is free as soon as the last reader lets go of it.
		k.recent.Remove(k.recent.Back())
	}
}

// pack writes the archive to a file that loses its name at once, so that nothing is left behind however the program
// ends.
func (k *Packer) pack(set string, sums []string) (*Archive, error) {
	file, err := os.CreateTemp(k.directory, "archive-*"+zstdSuffix)
	if err != nil {
		return nil, fmt.Errorf("pack the payload: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, fmt.Errorf("pack the payload into %s: %w", filepath.Base(file.Name()), err)
	}
	digest := sha256.New()
	size, err := k.payload.Pack(io.MultiWriter(file, digest), sums)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Archive{Size: size, SHA256: hex.EncodeToString(digest.Sum(nil)), set: set, file: file}, nil
}
