package release

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// maxLinks is the maximum number of links to follow from a path. More links are treated as a cycle.
const maxLinks = 16

// extractFile writes the file that a container of the image would have at a path. It reads the layers from the top down
// to the first layer with the file.
func extractFile(image registry.Image, file string, to target) error {
	layers, err := layersOf(image)
	if err != nil {
		return err
	}
	s := search{targetPath: file, top: len(layers) - 1}
	for links := 0; ; links++ {
		found, err := s.run(layers, to)
		if err != nil || found {
			return err
		}
		if links == maxLinks {
			return fmt.Errorf("/%s is a link that leads to itself", file)
		}
	}
}

// search searches for one path.
type search struct {
	targetPath string // without a leading slash
	top        int    // index of the first layer
	// directories contains the directories on the path that a layer has. They hide entries of the same name in lower
	// layers, such as links.
	directories map[string]bool
}

// run searches until it has written the file or found a link. For a link, it sets wanted to the target.
func (s *search) run(layers []layer, to target) (bool, error) {
	s.directories = map[string]bool{}
	for i := s.top; i >= 0; i-- {
		hit, err := s.read(layers[i], to)
		if err != nil {
			return false, fmt.Errorf("layer %s: %w", layers[i].digest, err)
		}
		switch hit.kind {
		case nothing:
		case aFile:
			return true, nil
		case aLink:
			s.targetPath = hit.path
			if s.top = len(layers) - 1; hit.inLayer {
				s.top = i
			}
			return false, nil
		case deleted:
			return false, fmt.Errorf("it has no file /%s: layer %s deletes it", s.targetPath, layers[i].digest)
		}
	}
	return false, fmt.Errorf("it has no file /%s", s.targetPath)
}

type kind int

const (
	nothing kind = iota
	aFile
	aLink
	deleted // for the layers below
)

// hit is the entry of a layer for a path.
type hit struct {
	kind    kind
	path    string // target of a link
	inLayer bool   // a hard link to a file of the same layer
}

// read reads a layer to the end, because the digest can be verified only then.
func (s *search) read(l layer, to target) (hit, error) {
	stream, err := l.openStream()
	if err != nil {
		return hit{}, err
	}
	defer stream.Close()
	var best hit
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return hit{}, stream.readError(err)
		}
		found, err := s.evaluateEntry(header)
		if err == nil && found.kind == aFile {
			err = write(reader, header, to)
		}
		if err != nil {
			return hit{}, stream.readError(err)
		}
		// The content of a layer takes precedence over its deletions, in any order.
		if found.kind != nothing && (found.kind != deleted || best.kind == nothing) {
			best = found
		}
	}
	return best, stream.verifyDigest()
}

func write(from io.Reader, header *tar.Header, to target) error {
	if header.Size > to.maxSize() {
		return fmt.Errorf("/%s has %d bytes, more than the limit of %d", cleanPath(header.Name), header.Size, to.maxSize())
	}
	if err := to.resetContent(); err != nil {
		return err
	}
	_, err := io.CopyN(to, from, header.Size)
	return err
}

// Image layers mark deletions by an empty file with such a name: for one entry of the directory, or for all
// entries.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

func cleanPath(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// evaluateEntry returns the effect of an entry on the wanted path.
func (s *search) evaluateEntry(header *tar.Header) (hit, error) {
	entry := cleanPath(header.Name)
	dir, base := path.Split(entry)
	if base == opaque {
		return deletionHit(isBelow(s.targetPath, strings.TrimSuffix(dir, "/"))), nil
	}
	if name, ok := strings.CutPrefix(base, whiteout); ok {
		entry = dir + name
		return deletionHit(entry == s.targetPath || isBelow(s.targetPath, entry)), nil
	}
	if entry != s.targetPath && !isBelow(s.targetPath, entry) || s.directories[entry] {
		return hit{}, nil
	}
	rest := strings.TrimPrefix(s.targetPath, entry) // "" for the path itself
	switch header.Typeflag {
	case tar.TypeSymlink:
		leads := header.Linkname
		if !path.IsAbs(leads) {
			leads = dir + leads
		}
		return hit{kind: aLink, path: cleanPath(leads + rest)}, nil
	case tar.TypeLink:
		return hit{kind: aLink, path: cleanPath(header.Linkname + rest), inLayer: true}, nil
	case tar.TypeDir:
		if rest == "" {
			return hit{}, fmt.Errorf("/%s is a folder instead of a file", entry)
		}
		s.directories[entry] = true
		return hit{}, nil
	case tar.TypeReg:
		if rest == "" {
			return hit{kind: aFile}, nil
		}
		return hit{kind: deleted}, nil // a file that replaces a directory has no content below
	}
	return hit{}, fmt.Errorf("/%s is neither a file nor a link, but of type %q", entry, header.Typeflag)
}

func deletionHit(is bool) hit {
	if is {
		return hit{kind: deleted}
	}
	return hit{}
}

func isBelow(p, folder string) bool { return folder == "" || strings.HasPrefix(p, folder+"/") }

// layer is a layer of an image, with its digest in the image's manifest.
type layer struct {
	v1.Layer

	digest v1.Hash
}
