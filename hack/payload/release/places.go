package release

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// A place is a possible source of component images. The digest identifies the image, so all sources are equivalent.
type place interface {
	// images returns the images with a digest: one for each platform if the digest is of an index.
	images(ctx context.Context, reference name.Digest) ([]registry.Image, error)
}

// placesOf returns the sources in the order of queries. A layout replaces all registries, because its users have no
// network.
func placesOf(source string, rules mirrorRules, inSource []registry.Image) ([]place, error) {
	if registry.IsFolder(source) {
		return []place{folder{source, inSource}}, nil
	}
	release, err := name.ParseReference(source)
	if err != nil {
		return nil, err
	}
	return []place{rules, beside{release.Context()}, itself{rules}}, nil
}

// find returns the image for a reference.
func (r *Release) find(ctx context.Context, reference name.Digest) (registry.Image, error) {
	var failures []error
	for _, p := range r.places {
		images, err := p.images(ctx, reference)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if len(images) > 0 {
			return registry.For(images, platform)
		}
	}
	return registry.Image{}, errors.Join(failures...)
}

// folder is a complete OCI layout.
type folder struct {
	path string
	all  []registry.Image
}

func (f folder) images(_ context.Context, reference name.Digest) ([]registry.Image, error) {
	var found []registry.Image
	for _, i := range f.all {
		if i.Digest.String() == reference.DigestStr() || i.Index.String() == reference.DigestStr() {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no image with this digest: copy it there with a program that keeps digests, say "+
			"`crane pull --format=oci`", f.path)
	}
	return found, nil
}

// beside is the repository of the release image, to which `oc adm release mirror` copies all images of a release.
type beside struct{ repository name.Repository }

func (b beside) images(ctx context.Context, reference name.Digest) ([]registry.Image, error) {
	if b.repository.String() == reference.Context().String() {
		return nil, nil // queried by itself
	}
	return ask(ctx, b.repository.Digest(reference.DigestStr()).String())
}

// itself is the original repository in the release, unless a rule forbids it.
type itself struct{ rules mirrorRules }

func (i itself) images(ctx context.Context, reference name.Digest) ([]registry.Image, error) {
	if i.rules.forbid(reference) {
		return nil, fmt.Errorf("%s must not be contacted: the file of mirrors says NeverContactSource", reference.Context())
	}
	return ask(ctx, reference.String())
}

func ask(ctx context.Context, reference string) ([]registry.Image, error) {
	images, err := registry.InRegistry(ctx, reference)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reference, err)
	}
	return images, nil
}
