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

// Paths in the image. deploy/deployment.yaml passes the payload's directory to the operator.
const (
	operatorPath     = "usr/bin/wmco"
	gatherPath       = "usr/bin/gather"                                // run by oc adm must-gather
	legacyPath       = "usr/local/bin/windows-machine-config-operator" // of the legacy operator, for scripts
	payloadPath      = "payload"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt" // the first path that Go checks
)

// layer is the content of a layer.
type layer struct {
	what  string // for the image's history
	files []file
	// compressed is true for content that must not be compressed again.
	compressed bool
	// unbudgeted is true for a layer that does not count against the image's budget.
	unbudgeted bool
	packed     bool // whether the pack includes the content
}

// file is a regular file or a symbolic link. Like all files of the image, it is owned by root and readable by all
// users: OpenShift runs the operator as an arbitrary user.
type file struct {
	path    string
	link    string // target of a symbolic link
	mode    int64
	size    int64
	content func() (io.ReadCloser, error)
}

// sharedLayers returns the layers that are the same on all platforms, the most stable first: a new release sends
// only the changed layers. The operator's layer comes last.
func sharedLayers(p *payload.Payload, withCertificates bool) ([]layer, error) {
	parts, err := p.Parts()
	if err != nil {
		return nil, err
	}
	var layers []layer
	if withCertificates {
		layers = append(layers, certificateLayer())
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
			add(layer{what: "component " + c.String() + " " + c.Version, compressed: true, unbudgeted: elsewhere, packed: elsewhere},
				parts.Components[c.String()]...)
		}
	}
	for i, pack := range parts.Packs { // separate layers, because most releases change some packs only
		add(layer{what: fmt.Sprintf("files of hosts, pack %d", i+1), compressed: true}, pack)
	}
	add(layer{what: "patches from earlier payloads", compressed: true, unbudgeted: true}, parts.Patches...)
	add(layer{what: "the agent, and the payload's manifest"},
		append(parts.Components[payload.ComponentAgent], parts.Manifest)...)
	return layers, err
}

// filesIn returns files of the payload's directory.
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

// operatorLayer returns the layer with the program and its links.
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

// certificateLayer returns the certificate authorities that Mozilla trusts, from a Go module: the same on every
// machine. Authorities that are trusted only for certificates issued before some date are excluded, because a file
// cannot express this.
func certificateLayer() layer {
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
