// Package release extracts files from an OpenShift release: from the release image to the image of a component, and
// to the layer with the file. Every byte is verified by digest. Callers check whether a file is suitable.
package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	imagev1 "github.com/openshift/api/image/v1"

	"github.com/windows-machine-config/wmco/hack/registry"
)

const (
	// referencesPath is the file of a release image that names the images of all components, as an ImageStream.
	referencesPath = "release-manifests/image-references"
	// releaseLabel is a label of release images only. Its value is the version.
	releaseLabel = "io.openshift.release"

	maxReferencesBytes = 16 << 20
	maxFileBytes       = 1 << 30
)

// platform is the platform of the images that contain programs for Windows nodes.
var platform = v1.Platform{OS: "linux", Architecture: "amd64"}

// Release is a parsed release image.
type Release struct {
	Version string // "4.20.1"

	source       string // as given by the user
	digest       v1.Hash
	components   map[string]name.Digest // by their tags in the ImageStream
	imageSources []imageSource
}

// Open reads a release image: a name in a registry, or a directory with an OCI layout, which must also contain the
// images of the components. The optional file mirrors lists other sources of these images.
func Open(ctx context.Context, source, mirrors string) (*Release, error) {
	r := &Release{source: source}
	if err := r.readRelease(ctx, mirrors); err != nil {
		return nil, fmt.Errorf("the release RELEASE=%s: %w", source, err)
	}
	return r, nil
}

func (r *Release) readRelease(ctx context.Context, mirrors string) error {
	rules, err := readMirrors(mirrors)
	if err != nil {
		return err
	}
	images, err := registry.Open(ctx, r.source)
	if err != nil {
		return err
	}
	image, err := r.chooseRelease(images)
	if err != nil {
		return err
	}
	r.digest = image.Digest
	if err := r.readReferences(image); err != nil {
		return err
	}
	r.imageSources, err = newImageSources(r.source, rules, images)
	return err
}

// chooseRelease returns the release image. A layout also contains other images.
func (r *Release) chooseRelease(images []registry.Image) (registry.Image, error) {
	var releases []registry.Image
	for _, i := range images {
		config, err := i.ConfigFile()
		if err != nil {
			return registry.Image{}, err
		}
		if config.Config.Labels[releaseLabel] != "" {
			releases = append(releases, i)
		}
	}
	if len(releases) == 0 {
		return registry.Image{}, fmt.Errorf("it is not a release image of OpenShift: it lacks the label %s", releaseLabel)
	}
	image, err := registry.For(releases, platform)
	if err != nil {
		return registry.Image{}, fmt.Errorf("it has %w: programs for Windows nodes are in the release for x86_64, and in the one "+
			"for multiple architectures", err)
	}
	for _, other := range releases {
		if other.Platform.Equals(image.Platform) && other.Digest != image.Digest {
			return registry.Image{}, errors.New("the folder has several releases: copy the one that the payload is for to a folder " +
				"of its own")
		}
	}
	return image, nil
}

// readReferences reads the names of the release's images.
func (r *Release) readReferences(image registry.Image) error {
	var content bytes.Buffer
	if err := extractFile(image, referencesPath, &buffer{Buffer: &content, maxBytes: maxReferencesBytes}); err != nil {
		return err
	}
	var stream imagev1.ImageStream
	if err := json.Unmarshal(content.Bytes(), &stream); err != nil {
		return fmt.Errorf("/%s is not an ImageStream: %w", referencesPath, err)
	}
	if stream.Kind != "ImageStream" || stream.Name == "" {
		return fmt.Errorf("/%s must be an ImageStream with a name, and its kind is %q", referencesPath, stream.Kind)
	}
	r.Version, r.components = stream.Name, map[string]name.Digest{}
	for _, tag := range stream.Spec.Tags {
		if tag.From == nil || tag.From.Kind != "DockerImage" {
			continue
		}
		reference, err := name.NewDigest(tag.From.Name)
		if err != nil {
			return fmt.Errorf("/%s names %q for %s, without a digest that it could be checked by", referencesPath,
				tag.From.Name, tag.Name)
		}
		r.components[tag.Name] = reference
	}
	return nil
}

// Origin is the origin of a file.
type Origin struct {
	Image   string // by digest, from the release
	Release string // by digest
}

func (o Origin) String() string { return o.Image + " of release " + o.Release }

// Origin returns the origin of a component's files without extracting them.
func (r *Release) Origin(component string) (Origin, error) {
	reference, ok := r.components[component]
	if !ok {
		return Origin{}, fmt.Errorf("the release RELEASE=%s (%s) has no component %s among its %d", r.source, r.Version,
			component, len(r.components))
	}
	return Origin{Image: reference.String(), Release: r.Version + " (" + r.digest.String() + ")"}, nil
}

// File writes a file of a component's image. The destination must not exist, and is created only on success.
func (r *Release) File(ctx context.Context, component, path, destination string) (Origin, error) {
	origin, err := r.Origin(component)
	if err != nil {
		return Origin{}, err
	}
	image, err := r.findImage(ctx, r.components[component])
	if err == nil {
		err = writeFile(image, path, destination)
	}
	if err != nil {
		return Origin{}, fmt.Errorf("component %s of release %s, image %s: %w", component, r.Version, origin.Image, err)
	}
	return origin, nil
}

func writeFile(image registry.Image, path, destination string) error {
	file, err := os.OpenFile(destination, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = extractFile(image, path, &onDisk{File: file, maxBytes: maxFileBytes})
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(destination))
	}
	return nil
}

// A target receives a file's content. If a layer contains the same file several times, the last one counts.
type target interface {
	io.Writer
	// resetContent discards the written content.
	resetContent() error
	// maxSize returns the maximum length of the content.
	maxSize() int64
}

type buffer struct {
	*bytes.Buffer

	maxBytes int64
}

func (b *buffer) resetContent() error { b.Reset(); return nil }
func (b *buffer) maxSize() int64      { return b.maxBytes }

type onDisk struct {
	*os.File

	maxBytes int64
}

func (d *onDisk) resetContent() error {
	_, err := d.Seek(0, io.SeekStart)
	return errors.Join(err, d.Truncate(0))
}
func (d *onDisk) maxSize() int64 { return d.maxBytes }
