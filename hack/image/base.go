package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// base is what the image is built on. The zero value is nothing.
type base struct {
	source string
	name   string // of an image in a registry
	images []candidate
}

// candidate is an image for one platform.
type candidate struct {
	platform v1.Platform
	image    v1.Image
}

// openBase opens the image in a folder or a registry; none is no base.
func openBase(ctx context.Context, source string) (base, error) {
	if source == "" {
		return base{}, nil
	}
	b := base{source: source}
	var err error
	if _, missing := os.Stat(source); missing == nil {
		b.images, err = inLayout(source)
	} else {
		b.images, err = inRegistry(ctx, source)
		b.name = source
	}
	if err == nil && len(b.images) == 0 {
		err = errors.New("it holds no image")
	}
	if err != nil {
		return base{}, fmt.Errorf("the base image BASE=%s: %w", source, err)
	}
	return b, nil
}

func inLayout(folder string) ([]candidate, error) {
	path, err := layout.FromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("it is no folder with an OCI layout: %w", err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("it is no folder with an OCI layout: %w", err)
	}
	return candidates(index)
}

func inRegistry(ctx context.Context, source string) ([]candidate, error) {
	reference, err := name.ParseReference(source)
	if err != nil {
		return nil, fmt.Errorf("it is neither a folder nor the name of an image: %w", err)
	}
	found, err := remote.Get(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, err
	}
	switch {
	case found.MediaType.IsIndex():
		index, err := found.ImageIndex()
		if err != nil {
			return nil, err
		}
		return candidates(index)
	case found.MediaType.IsImage():
		image, err := found.Image()
		if err != nil {
			return nil, err
		}
		return described(nil, image)
	}
	return nil, fmt.Errorf("it is no image: its media type is %s", found.MediaType)
}

// candidates returns the images of an index and of the indexes in it.
func candidates(index v1.ImageIndex) ([]candidate, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, d := range manifest.Manifests {
		var more []candidate
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			if more, err = candidates(inner); err != nil {
				return nil, err
			}
		case d.MediaType.IsImage():
			image, err := index.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			if more, err = described(d.Platform, image); err != nil {
				return nil, err
			}
		}
		found = append(found, more...)
	}
	return found, nil
}

// described returns an image with its platform, which its own configuration has if nothing else says it; nothing for
// what is no image, but an SBOM, say.
func described(platform *v1.Platform, image v1.Image) ([]candidate, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if !manifest.Config.MediaType.IsConfig() {
		return nil, nil
	}
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
	return []candidate{{platform: *platform, image: image}}, nil
}

// scratch reports whether there is no base.
func (b base) scratch() bool { return b.source == "" }

// on returns the base for a platform.
func (b base) on(p v1.Platform) (v1.Image, error) {
	if b.scratch() {
		return empty.Image, nil
	}
	var others []string
	for _, c := range b.images {
		if c.platform.OS == p.OS && c.platform.Architecture == p.Architecture {
			return c.image, nil
		}
		others = append(others, c.platform.String())
	}
	slices.Sort(others)
	return nil, fmt.Errorf("the base image BASE=%s has no image for %s: it has %s", b.source, p.String(),
		strings.Join(slices.Compact(others), ", "))
}
