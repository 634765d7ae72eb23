package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"io"
	"runtime/debug"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/windows-machine-config/wmco/hack/image/sbom"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// certificatesModule is the module with the certificate authorities.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// newSBOM returns the SBOM of the image with a digest.
func (w writer) newSBOM(operators []operator, p *payload.Payload, digest v1.Hash) ([]byte, error) {
	image := sbom.Image{Name: imageName, Version: w.version, SHA256: digest.Hex, Created: w.created, Vendor: vendor,
		License: licenses, Base: w.base.source}
	if w.base.isScratch() {
		image.Modules = linkedModules(certificatesModule)
	}
	for _, o := range operators {
		sum, err := fileDigest(o.file)
		if err != nil {
			return nil, err
		}
		image.Programs = append(image.Programs, sbom.Program{Name: "wmco " + o.platform.String(), Version: o.version,
			File: "/" + operatorPath, SHA256: sum, Build: o.info})
	}
	for _, c := range p.Manifest().Components {
		if p.IsIncomplete(c) {
			continue
		}
		for _, f := range c.Files {
			info, err := buildOf(p, f)
			if err != nil {
				return nil, err
			}
			image.Programs = append(image.Programs, sbom.Program{Name: f.Path, Version: c.Version, SHA256: f.SHA256,
				Source: c.Source, Build: info})
		}
	}
	return sbom.Document(image)
}

// linkedModules returns a module that is linked into this program.
func linkedModules(path string) []*debug.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return []*debug.Module{m}
		}
	}
	return nil
}

// buildOf returns the build information of a file in the payload, or nil for a file that was not built by Go.
func buildOf(p *payload.Payload, f payload.File) (*buildinfo.BuildInfo, error) {
	content, err := p.Open(f.SHA256)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(content)
	if err := errors.Join(err, content.Close()); err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return nil, nil //nolint:nilerr // a component need not be a Go program
	}
	return info, nil
}
