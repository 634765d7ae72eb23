package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// referenceName is the annotation with the name of an image in a layout.
const referenceName = "org.opencontainers.image.ref.name"

// writer writes a layout.
type writer struct {
	layout  string // an empty directory
	create  func(string) (io.WriteCloser, error)
	created time.Time
	version string
	base    base
}

// written describes the written image.
type written struct {
	digest, sbomDigest v1.Hash
	sbom               []byte
	images             []writtenImage
}

type writtenImage struct {
	platform v1.Platform
	layers   int
	size     int64   // of all layers, compressed
	shares   []share // in the image's budget
}

// write writes the images of all platforms, their index, and the SBOM that refers to the index.
func (w writer) write(operators []operator, files *payload.Payload, tag string) (written, error) {
	if err := os.MkdirAll(w.blobDirectory(), 0o755); err != nil {
		return written{}, err
	}
	shared, err := sharedLayers(files, w.base.isScratch())
	if err != nil {
		return written{}, err
	}
	sharedBlobs, err := w.blobsOf(shared)
	if err != nil {
		return written{}, err
	}
	var result written
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, o := range operators {
		image, line, err := w.writeImage(o, shared, sharedBlobs)
		if err != nil {
			return written{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: noArtifact{image},
			Descriptor: v1.Descriptor{Platform: &o.platform}})
		result.images = append(result.images, line)
	}
	index, ok := mutate.Annotations(index, imageAnnotations(w.version)).(v1.ImageIndex)
	if !ok {
		return written{}, fmt.Errorf("the library returned no index")
	}
	if result.digest, err = index.Digest(); err != nil {
		return written{}, err
	}
	if result.sbom, err = w.newSBOM(operators, files, result.digest); err != nil {
		return written{}, fmt.Errorf("the SBOM: %w", err)
	}
	path, err := layout.Write(w.layout, empty.Index)
	if err != nil {
		return written{}, err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{referenceName: tag})); err != nil {
		return written{}, err
	}
	result.sbomDigest, err = attachSBOM(path, index, result.sbom)
	return result, err
}

// noArtifact is an image without artifactType in the index entry. The library would otherwise set the
// configuration's media type, and skopeo of Debian 12 cannot copy such an index without changing the digest.
type noArtifact struct{ v1.Image }

// ArtifactType is called by the library.
func (noArtifact) ArtifactType() (string, error) { return "", nil }

func (w writer) blobDirectory() string { return filepath.Join(w.layout, "blobs", "sha256") }

func (w writer) blobsOf(layers []layer) ([]blob, error) {
	var blobs []blob
	for _, l := range layers {
		b, err := writeBlob(w.blobDirectory(), l, w.created, w.create)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, b)
	}
	return blobs, nil
}

// writeImage writes the image for one platform.
func (w writer) writeImage(o operator, shared []layer, sharedBlobs []blob) (v1.Image, writtenImage, error) {
	from, err := w.base.imageFor(o.platform)
	if err != nil {
		return nil, writtenImage{}, err
	}
	operatorBlob, err := operatorLayer(o)
	if err != nil {
		return nil, writtenImage{}, err
	}
	operatorBlobs, err := w.blobsOf([]layer{operatorBlob})
	if err != nil {
		return nil, writtenImage{}, err
	}
	inherited, adds, err := inheritBase(from)
	if err != nil {
		return nil, writtenImage{}, fmt.Errorf("the base image BASE=%s: %w", w.base.source, err)
	}
	layers, blobs := append(slices.Clone(shared), operatorBlob), append(slices.Clone(sharedBlobs), operatorBlobs...)
	var shares []share
	for i, b := range blobs {
		l, err := partial.CompressedToLayer(b)
		if err != nil {
			return nil, writtenImage{}, err
		}
		adds = append(adds, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: w.created},
			CreatedBy: "hack/image", Comment: layers[i].what}})
		if !layers[i].unbudgeted {
			shares = append(shares, share{layers[i].what, b.size})
		} else if layers[i].packed {
			shares = append(shares, share{"less its part of the pack: " + layers[i].what, -b.size})
		}
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), adds...)
	if err != nil {
		return nil, writtenImage{}, err
	}
	layered, err := image.ConfigFile()
	if err != nil {
		return nil, writtenImage{}, err
	}
	complete := newImageConfig(layered, inherited, o.platform, w.version, w.created)
	if image, err = mutate.ConfigFile(image, complete); err != nil {
		return nil, writtenImage{}, err
	}
	image, err = w.annotateImage(image, from)
	if err != nil {
		return nil, writtenImage{}, err
	}
	line, err := measureImage(image, o.platform)
	line.shares = shares
	return image, line, err
}

// annotateImage adds the description of the image and the name of its base.
func (w writer) annotateImage(image, from v1.Image) (v1.Image, error) {
	all := imageAnnotations(w.version)
	if !w.base.isScratch() {
		digest, err := from.Digest()
		if err != nil {
			return nil, err
		}
		all["org.opencontainers.image.base.digest"] = digest.String()
	}
	if w.base.name != "" {
		all["org.opencontainers.image.base.name"] = w.base.name
	}
	annotated, ok := mutate.Annotations(image, all).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("the library returned no image")
	}
	return annotated, nil
}

// inheritBase returns the configuration and the layers of the base, which precede the image's layers.
func inheritBase(from v1.Image) (*v1.ConfigFile, []mutate.Addendum, error) {
	config, err := from.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	layers, err := from.Layers()
	if err != nil {
		return nil, nil, err
	}
	var adds []mutate.Addendum
	for _, l := range layers {
		mediaType, err := l.MediaType()
		if err != nil {
			return nil, nil, err
		}
		adds = append(adds, mutate.Addendum{Layer: l, MediaType: ociLayer(mediaType),
			History: v1.History{Created: config.Created, Comment: "the base image"}})
	}
	return config, adds, nil
}

// ociLayer returns OCI's name of a layer's media type. Docker uses different names.
func ociLayer(mediaType types.MediaType) types.MediaType {
	switch mediaType {
	case types.DockerLayer:
		return types.OCILayer
	case types.DockerUncompressedLayer:
		return types.OCIUncompressedLayer
	}
	return mediaType
}

func measureImage(image v1.Image, p v1.Platform) (writtenImage, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return writtenImage{}, err
	}
	line := writtenImage{platform: p, layers: len(manifest.Layers)}
	for _, l := range manifest.Layers {
		line.size += l.Size
	}
	return line, nil
}

// formatSummary returns a summary of the written image for the user.
func (r written) formatSummary(output string) string {
	var b strings.Builder
	for _, i := range r.images {
		fmt.Fprintf(&b, "%s: %d layers, %.1f MiB compressed\n", i.platform.String(), i.layers, float64(i.size)/(1<<20))
	}
	fmt.Fprintf(&b, "%s is the image %s, and %s its SBOM\n", filepath.Clean(output), r.digest, sbomPath(output))
	return b.String()
}
