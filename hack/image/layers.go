package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// Where things are in the image. deploy/deployment.yaml gives the payload's folder to the operator.
const (
	operatorPath     = "usr/bin/wmco"
	gatherPath       = "usr/bin/gather"                                // oc adm must-gather runs it
	legacyPath       = "usr/local/bin/windows-machine-config-operator" // of the program before version 12, for scripts
	payloadPath      = "payload"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt" // the first place in which Go looks
)

// layer is what a layer holds.
type layer struct {
	what  string // for the image's history
	files []file
	// compressed content is not compressed again.
	compressed bool
	// unbudgeted layers do not count against the image's budget.
	unbudgeted bool
	packed     bool // whether the pack has the content, too
}

// file is one regular file, or a symbolic link. Its owner is root, as for all files of the image, and everybody may read
// it: OpenShift runs the operator as a user of its own choice.
type file struct {
	path    string
	link    string // of a symbolic link: where it leads
	mode    int64
	size    int64
	content func() (io.ReadCloser, error)
}

// sharedLayers are the layers that are the same on all platforms. What changes least comes first: a new release sends
// only the layers that it changes. The operator's layer comes after them.
func sharedLayers(p *payload.Payload, withCertificates bool) ([]layer, error) {
	parts, err := p.Parts()
	if err != nil {
		return nil, err
	}
	var layers []layer
	if withCertificates {
		layers = append(layers, certificates())
	}
	add := func(l layer, names ...string) {
		files, failure := filesIn(p.Directory(), names)
		err = errors.Join(err, failure)
		if len(files) > 0 {
			l.files = files
			layers = append(layers, l)
		}
	}
	for _, c := range p.Manifest().Components {
		if c.Name != payload.ComponentAgent {
			elsewhere := c.Name == external
			add(layer{what: "component " + c.Name + " " + c.Version, compressed: true, unbudgeted: elsewhere, packed: elsewhere},
				parts.Components[c.Name]...)
		}
	}
	add(layer{what: "what each host gets, packed", compressed: true}, parts.Packs...)
	add(layer{what: "patches from earlier payloads", compressed: true, unbudgeted: true}, parts.Patches...)
	add(layer{what: "the agent, and the payload's manifest"},
		append(parts.Components[payload.ComponentAgent], parts.Manifest)...)
	return layers, err
}

// filesIn returns files of the payload's folder.
func filesIn(directory string, names []string) ([]file, error) {
	var files []file
	for _, name := range names {
		f, err := fileAt(filepath.Join(directory, filepath.FromSlash(name)), path.Join(payloadPath, name), 0o644)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// operatorLayer returns the layer with the program, and with links under its other names.
func operatorLayer(o operator) (layer, error) {
	f, err := fileAt(o.file, operatorPath, 0o755)
	gather := file{path: gatherPath, link: path.Base(operatorPath), mode: 0o777}
	legacy := file{path: legacyPath, link: "../../bin/" + path.Base(operatorPath), mode: 0o777}
	return layer{what: "the operator " + o.version, files: []file{f, gather, legacy}}, err
}

func fileAt(source, target string, mode int64) (file, error) {
	info, err := os.Stat(source)
	if err != nil {
		return file{}, err
	}
	return file{path: target, mode: mode, size: info.Size(),
		content: func() (io.ReadCloser, error) { return os.Open(source) }}, nil
}

// certificates are the certificate authorities that Mozilla trusts, from a Go module: the same on every machine. Those
// that are trusted only for certificates before some day are left out, because a file cannot say so.
func certificates() layer {
	var data bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to memory does not fail.
			_ = pem.Encode(&data, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return layer{what: "certificate authorities", files: []file{{
		path: certificatesPath, mode: 0o644, size: int64(data.Len()),
		content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil },
	}}}
}

func (l layer) String() string { return fmt.Sprintf("%s (%d files)", l.what, len(l.files)) }
