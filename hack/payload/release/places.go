package release

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// A place is where images of components may be. The digest proves which image it is, so that any place is as good as
// another.
type place interface {
	// images returns those with a digest: one for each platform if an index has the digest.
	images(ctx context.Context, reference name.Digest) ([]registry.Image, error)
}

// placesOf returns the places in the order in which they are asked. A layout stands for all registries: who has one has
// no network.
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

// find returns the image that a reference names.
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

// folder is an OCI layout that has everything.
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

// beside is the repository of the release image, where `oc adm release mirror` puts all images of a release.
type beside struct{ repository name.Repository }

func (b beside) images(ctx context.Context, reference name.Digest) ([]registry.Image, error) {
	if b.repository.String() == reference.Context().String() {
		return nil, nil // it is asked as itself
	}
	return ask(ctx, b.repository.Digest(reference.DigestStr()).String())
}

// itself is the name that the release has, if no rule forbids it.
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
