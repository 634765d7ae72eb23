// Package registry opens images in a registry or in an OCI layout on disk. It is read-only.
package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Image is an image for one platform.
type Image struct {
	v1.Image

	Platform v1.Platform
	Digest   v1.Hash
	Index    v1.Hash // of the containing inner index, or the zero value
}

// Open returns the images in a directory with an OCI layout or under a name in a registry, for all platforms. It
// returns at least one image.
func Open(ctx context.Context, source string) ([]Image, error) {
	var images []Image
	var err error
	switch {
	case IsDirectory(source):
		images, err = InLayout(source)
	case strings.HasPrefix(source, "/"), strings.HasPrefix(source, "."): // No image name starts like this.
		err = errors.New("there is no such folder")
	default:
		images, err = InRegistry(ctx, source)
	}
	if err == nil && len(images) == 0 {
		err = errors.New("it holds no image")
	}
	return images, err
}

// IsDirectory reports whether a source is a directory and not the name of an image.
func IsDirectory(source string) bool {
	_, missing := os.Stat(source)
	return missing == nil
}

// InLayout returns all images of an OCI layout.
func InLayout(dir string) ([]Image, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("it is not a folder with an OCI layout: %w", err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("it is not a folder with an OCI layout: %w", err)
	}
	return imagesOf(index)
}

// InRegistry returns the images under a name in a registry.
func InRegistry(ctx context.Context, source string) ([]Image, error) {
	reference, err := name.ParseReference(source)
	if err != nil {
		return nil, fmt.Errorf("it is neither a folder nor the name of an image: %w", err)
	}
	keychain, err := Keychain()
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain))
	if err != nil {
		return nil, err
	}
	switch {
	case found.MediaType.IsIndex():
		index, err := found.ImageIndex()
		if err != nil {
			return nil, err
		}
		return imagesOf(index)
	case found.MediaType.IsImage():
		image, err := found.Image()
		if err != nil {
			return nil, err
		}
		return imageWithPlatform(v1.Descriptor{Digest: found.Digest}, image)
	}
	return nil, fmt.Errorf("it is not an image: its media type is %s", found.MediaType)
}

// imagesOf returns the images of an index and of the indexes in it.
func imagesOf(index v1.ImageIndex) ([]Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var found []Image
	for _, d := range manifest.Manifests {
		var more []Image
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			if more, err = imagesOf(inner); err != nil {
				return nil, err
			}
			for i := range more {
				more[i].Index = d.Digest
			}
		case d.MediaType.IsImage():
			image, err := index.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			if more, err = imageWithPlatform(d, image); err != nil {
				return nil, err
			}
		}
		found = append(found, more...)
	}
	return found, nil
}

// imageWithPlatform returns an image with its platform, from the configuration if the descriptor has none. For a
// manifest that is not an image, such as an SBOM, the result is empty.
func imageWithPlatform(d v1.Descriptor, image v1.Image) ([]Image, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if !manifest.Config.MediaType.IsConfig() {
		return nil, nil
	}
	platform := d.Platform
	if platform == nil {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		platform = config.Platform()
	}
	if platform == nil || platform.OS == "" {
		return nil, nil
	}
	return []Image{{Platform: *platform, Image: image, Digest: d.Digest}}, nil
}

// For returns the image for a platform.
func For(images []Image, p v1.Platform) (Image, error) {
	var platforms []string
	for _, i := range images {
		if i.Platform.OS == p.OS && i.Platform.Architecture == p.Architecture {
			return i, nil
		}
		platforms = append(platforms, i.Platform.String())
	}
	slices.Sort(platforms)
	return Image{}, fmt.Errorf("no image for %s: it has %s", p.String(), strings.Join(slices.Compact(platforms), ", "))
}
