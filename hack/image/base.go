package main

import (
	"context"
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// base is the base image. The zero value means no base image.
type base struct {
	source string
	name   string // of an image in a registry
	images []registry.Image
}

// openBase opens the image in a directory or a registry. An empty source means no base.
func openBase(ctx context.Context, source string) (base, error) {
	if source == "" {
		return base{}, nil
	}
	b := base{source: source}
	if !registry.IsDirectory(source) {
		b.name = source
	}
	var err error
	if b.images, err = registry.Open(ctx, source); err != nil {
		return base{}, fmt.Errorf("the base image BASE=%s: %w", source, err)
	}
	return b, nil
}

// isScratch reports whether there is no base.
func (b base) isScratch() bool { return b.source == "" }

// imageFor returns the base for a platform.
func (b base) imageFor(p v1.Platform) (v1.Image, error) {
	if b.isScratch() {
		return empty.Image, nil
	}
	found, err := registry.For(b.images, p)
	if err != nil {
		return nil, fmt.Errorf("the base image BASE=%s has %w", b.source, err)
	}
	if b.name == "" { // content from a registry is verified during the download
		if err := checkLayers(found.Image); err != nil {
			return nil, fmt.Errorf("the base image BASE=%s: %w", b.source, err)
		}
	}
	return found.Image, nil
}

// checkLayers checks that all layers of an image in a directory exist and have their digests.
func checkLayers(image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		want, err := l.Digest()
		if err != nil {
			return err
		}
		content, err := l.Compressed()
		if err != nil {
			return fmt.Errorf("layer %s: %w", want, err)
		}
		got, _, err := v1.SHA256(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("layer %s: %w", want, err)
		}
		if got != want {
			return fmt.Errorf("layer %s is damaged, it has the digest %s: copy the image again", want, got)
		}
	}
	return nil
}
