package release

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// A imageSource is a possible source of component images. The digest identifies the image, so all sources are
// equivalent.
type imageSource interface {
	// findImages returns the images with a digest: one for each platform if the digest is of an index.
	findImages(ctx context.Context, reference name.Digest) ([]registry.Image, error)
}

// newImageSources returns the sources in the order of queries. A layout replaces all registries, because its users
// have no network.
func newImageSources(source string, rules mirrorRules, inSource []registry.Image) ([]imageSource, error) {
	if registry.IsDirectory(source) {
		return []imageSource{layoutDirectory{source, inSource}}, nil
	}
	release, err := name.ParseReference(source)
	if err != nil {
		return nil, err
	}
	return []imageSource{rules, releaseRepository{release.Context()}, originalRepository{rules}}, nil
}

// findImage returns the image for a reference.
func (r *Release) findImage(ctx context.Context, reference name.Digest) (registry.Image, error) {
	var failures []error
	for _, p := range r.imageSources {
		images, err := p.findImages(ctx, reference)
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

// layoutDirectory is a complete OCI layout.
type layoutDirectory struct {
	path string
	all  []registry.Image
}

func (f layoutDirectory) findImages(_ context.Context, reference name.Digest) ([]registry.Image, error) {
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

// releaseRepository is the repository of the release image, to which `oc adm release mirror` copies all images of a
// release.
type releaseRepository struct{ repository name.Repository }

func (b releaseRepository) findImages(ctx context.Context, reference name.Digest) ([]registry.Image, error) {
	if b.repository.String() == reference.Context().String() {
		return nil, nil // queried by itself
	}
	return fetchImages(ctx, b.repository.Digest(reference.DigestStr()).String())
}

// originalRepository is the original repository in the release, unless a rule forbids it.
type originalRepository struct{ rules mirrorRules }

func (i originalRepository) findImages(ctx context.Context, reference name.Digest) ([]registry.Image, error) {
	if i.rules.isSourceForbidden(reference) {
		return nil, fmt.Errorf("%s must not be contacted: the file of mirrors says NeverContactSource", reference.Context())
	}
	return fetchImages(ctx, reference.String())
}

func fetchImages(ctx context.Context, reference string) ([]registry.Image, error) {
	images, err := registry.InRegistry(ctx, reference)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reference, err)
	}
	return images, nil
}
