// Package operatorimage reads what an image of the operator would bring to hosts: the manifest of its payload. It needs no
// more of the image than the layer that has it.
package operatorimage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/registrylogin"
)

// manifestPath is where the manifest is in the image; hack/image puts it there.
const manifestPath = "payload/" + payload.ManifestName

// mostManifest is how large a manifest may be, in bytes.
const mostManifest = 4 << 20

// mostLayer is how large a layer may be when it is unpacked, in bytes: what is packed may be a thousand times as large.
const mostLayer = 8 << 30

// Manifest returns the manifest of the payload of an image in a registry, as JSON. The login of docker or podman is used.
func Manifest(ctx context.Context, image string) ([]byte, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("%q is not the name of an image: %w", image, err)
	}
	keychain, err := registrylogin.Keychain()
	if err != nil {
		return nil, fmt.Errorf("find the login for image %s: %w", image, err)
	}
	// The payload is the same on all platforms; this one is what an index of images is sure to have.
	found, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w. Log in with podman login or docker login if the registry asks for that", image, err)
	}
	manifest, err := manifestIn(found)
	if err != nil {
		return nil, fmt.Errorf("read the payload's manifest from image %s: %w", image, err)
	}
	return manifest, nil
}

var errNoManifest = errors.New("it has no /" + manifestPath + ": it is not an image of this operator, or is of a version before 12")

// manifestIn returns the manifest. A layer hides what those below it have.
func manifestIn(image v1.Image) ([]byte, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	if likely := likelyLayer(image, layers); likely != nil {
		layers = append(layers, likely)
	}
	for i := len(layers) - 1; i >= 0; i-- {
		manifest, err := manifestInLayer(layers[i], mostLayer)
		if err != nil || manifest != nil {
			return manifest, err
		}
	}
	return nil, errNoManifest
}

// likelyLayer is the layer that the history of the image says to have the manifest, so that others need not be read. It is
// nil when the history says that of none, or when something else than hack/image has made one above it, which may hide it.
func likelyLayer(image v1.Image, layers []v1.Layer) (likely v1.Layer) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil
	}
	at := 0
	for _, step := range config.History {
		switch {
		case step.EmptyLayer:
			continue
		case at >= len(layers) || step.CreatedBy != payload.ImageBuilder:
			likely = nil
		case step.Comment == payload.ManifestLayer:
			likely = layers[at]
		}
		at++
	}
	if at != len(layers) {
		return nil // it is the history of another image
	}
	return likely
}

// manifestInLayer returns the manifest; nil when the layer does not have it. All of the layer is read, so that it is
// compared with its digest.
func manifestInLayer(layer v1.Layer, most int64) (manifest []byte, err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	limited := &io.LimitedReader{R: content, N: most}
	archive := tar.NewReader(limited)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, limited)
		}
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("a layer has more than %d bytes, which no layer of ours has", most)
		case err != nil:
			return nil, err
		case header == nil:
			return manifest, nil
		}
		if strings.TrimPrefix(path.Clean(header.Name), "/") != manifestPath || header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Size > mostManifest {
			return nil, fmt.Errorf("the manifest has %d bytes, which no manifest of ours has", header.Size)
		}
		if manifest, err = io.ReadAll(archive); err != nil {
			return nil, err
		}
		// The operator's command would wait for the end of what is no whole document.
		if !bytes.HasPrefix(bytes.TrimSpace(manifest), []byte("{")) || !json.Valid(manifest) {
			return nil, errors.New("the manifest is not a JSON object: the image is damaged")
		}
	}
}
