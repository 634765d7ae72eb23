// Package operatorimage reads what an image of the operator would bring to hosts: the manifest of its payload. It needs no
// more of the image than the layer that has it.
package operatorimage

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// manifestPath is where the manifest is in the image; hack/image puts it there.
const manifestPath = "payload/" + payload.ManifestName

// mostManifest is how large a manifest may be, in bytes.
const mostManifest = 4 << 20

// Manifest returns the manifest of the payload of an image in a registry, as JSON. The login of docker and podman is used
// (~/.docker/config.json, REGISTRY_AUTH_FILE).
func Manifest(ctx context.Context, image string) ([]byte, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("%q is not the name of an image: %w", image, err)
	}
	// The payload is the same on all platforms; this one is what an index of images is sure to have.
	found, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
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
		manifest, err := manifestInLayer(layers[i])
		if err != nil || manifest != nil {
			return manifest, err
		}
	}
	return nil, errNoManifest
}

// likelyLayer is the layer that the history of the image says to have the manifest, so that others need not be read; nil
// when it says that of none, because something else than hack/image has made it.
func likelyLayer(image v1.Image, layers []v1.Layer) v1.Layer {
	config, err := image.ConfigFile()
	if err != nil {
		return nil
	}
	at := 0
	for _, step := range config.History {
		switch {
		case step.EmptyLayer:
			continue
		case step.Comment == payload.ManifestLayer && at < len(layers):
			return layers[at]
		}
		at++
	}
	return nil
}

// manifestInLayer returns the manifest; nil when the layer does not have it. All of the layer is read, so that it is
// compared with its digest.
func manifestInLayer(layer v1.Layer) (manifest []byte, err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, content)
			return manifest, err
		}
		if err != nil {
			return nil, err
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
	}
}
