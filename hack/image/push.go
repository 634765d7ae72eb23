package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// parseTag parses the name for the push. An empty name means no push.
func parseTag(image string) (name.Tag, error) {
	if image == "" {
		return name.Tag{}, nil
	}
	tag, err := name.NewTag(image)
	if err != nil {
		return name.Tag{}, fmt.Errorf("IMAGE=%s is not the name of an image with a tag: %w", image, err)
	}
	return tag, nil
}

// pushImage pushes the image for all platforms, and the SBOM that refers to it.
func pushImage(ctx context.Context, tag name.Tag, output string, w written) error {
	path, err := layout.FromPath(output)
	if err != nil {
		return err
	}
	root, err := path.ImageIndex()
	if err != nil {
		return err
	}
	image, err := root.ImageIndex(w.digest)
	if err != nil {
		return err
	}
	description, err := root.Image(w.sbomDigest)
	if err != nil {
		return err
	}
	keychain, err := registry.Keychain()
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain)}
	if err := remote.WriteIndex(tag, image, options...); err != nil {
		return err
	}
	return remote.Write(tag.Context().Digest(w.sbomDigest.String()), description, options...)
}
