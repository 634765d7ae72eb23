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

// maxLinks is how many links are followed from a path: more are a circle.
const maxLinks = 16

// extract writes the file that a container of the image would see under a path. It reads the layers from the top, and
// none below the one that has the file.
func extract(image registry.Image, file string, to target) error {
	layers, err := layersOf(image)
	if err != nil {
		return err
	}
	s := search{wanted: file, top: len(layers) - 1}
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

// search looks for one path.
type search struct {
	wanted string // without a slash at its beginning
	top    int    // the layer to begin with
	// folders are those on the way that a layer has: what a lower one has under that name, a link say, is covered.
	folders map[string]bool
}

// run searches until it has written the file, or has come to a link: then wanted is what the link leads to.
func (s *search) run(layers []layer, to target) (bool, error) {
	s.folders = map[string]bool{}
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
			s.wanted = hit.path
			if s.top = len(layers) - 1; hit.inLayer {
				s.top = i
			}
			return false, nil
		case deleted:
			return false, fmt.Errorf("it has no file /%s: layer %s deletes it", s.wanted, layers[i].digest)
		}
	}
	return false, fmt.Errorf("it has no file /%s", s.wanted)
}

type kind int

const (
	nothing kind = iota
	aFile
	aLink
	deleted // for the layers below
)

// hit is what a layer says of a path.
type hit struct {
	kind    kind
	path    string // that a link leads to
	inLayer bool   // a hard link leads to a file of the same layer
}

// read reads a layer to its end: only then its digest is known to be right.
func (s *search) read(l layer, to target) (hit, error) {
	stream, err := l.open()
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
			return hit{}, stream.fault(err)
		}
		found, err := s.judge(header)
		if err == nil && found.kind == aFile {
			err = write(reader, header, to)
		}
		if err != nil {
			return hit{}, stream.fault(err)
		}
		// What a layer has goes before what it deletes, wherever both stand in it.
		if found.kind != nothing && (found.kind != deleted || best.kind == nothing) {
			best = found
		}
	}
	return best, stream.verify()
}

func write(from io.Reader, header *tar.Header, to target) error {
	if header.Size > to.max() {
		return fmt.Errorf("/%s has %d bytes, more than the limit of %d", cleaned(header.Name), header.Size, to.max())
	}
	if err := to.reset(); err != nil {
		return err
	}
	_, err := io.CopyN(to, from, header.Size)
	return err
}

// What image layers delete is an empty file with one of these names: for one entry of the folder, and for all.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

func cleaned(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// judge says what an entry means for the wanted path.
func (s *search) judge(header *tar.Header) (hit, error) {
	entry := cleaned(header.Name)
	folder, base := path.Split(entry)
	if base == opaque {
		return deletes(isBelow(s.wanted, strings.TrimSuffix(folder, "/"))), nil
	}
	if name, ok := strings.CutPrefix(base, whiteout); ok {
		entry = folder + name
		return deletes(entry == s.wanted || isBelow(s.wanted, entry)), nil
	}
	if entry != s.wanted && !isBelow(s.wanted, entry) || s.folders[entry] {
		return hit{}, nil
	}
	rest := strings.TrimPrefix(s.wanted, entry) // "" for the path itself
	switch header.Typeflag {
	case tar.TypeSymlink:
		leads := header.Linkname
		if !path.IsAbs(leads) {
			leads = folder + leads
		}
		return hit{kind: aLink, path: cleaned(leads + rest)}, nil
	case tar.TypeLink:
		return hit{kind: aLink, path: cleaned(header.Linkname + rest), inLayer: true}, nil
	case tar.TypeDir:
		if rest == "" {
			return hit{}, fmt.Errorf("/%s is a folder instead of a file", entry)
		}
		s.folders[entry] = true
		return hit{}, nil
	case tar.TypeReg:
		if rest == "" {
			return hit{kind: aFile}, nil
		}
		return hit{kind: deleted}, nil // a file in the place of a folder has nothing below it
	}
	return hit{}, fmt.Errorf("/%s is neither a file nor a link, but of type %q", entry, header.Typeflag)
}

func deletes(is bool) hit {
	if is {
		return hit{kind: deleted}
	}
	return hit{}
}

func isBelow(p, folder string) bool { return folder == "" || strings.HasPrefix(p, folder+"/") }

// layer is a layer of an image, with the digest that the image's manifest has for it.
type layer struct {
	v1.Layer

	digest v1.Hash
}
