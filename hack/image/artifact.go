package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// sbomType is the media type of an SPDX document in JSON.
const sbomType = "application/spdx+json"

// emptyConfig is OCI's configuration of an artifact without configuration.
const (
	emptyConfig     = "{}"
	emptyConfigType = "application/vnd.oci.empty.v1+json"
)

// artifact is an OCI artifact: a manifest with one file that refers to an image.
type artifact struct {
	manifest []byte
	content  v1.Layer
}

// attachSBOM adds the SBOM to a layout as an artifact that refers to the image, so that registries list the SBOM among
// the image's referrers.
func attachSBOM(path layout.Path, image v1.ImageIndex, sbom []byte) (v1.Hash, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return v1.Hash{}, err
	}
	described, err := newArtifact(*subject, sbom)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := path.AppendImage(described); err != nil {
		return v1.Hash{}, err
	}
	return described.Digest()
}

func newArtifact(subject v1.Descriptor, sbom []byte) (v1.Image, error) {
	a := artifact{content: static.NewLayer(sbom, sbomType)}
	content, err := partial.Descriptor(a.content)
	if err != nil {
		return nil, err
	}
	content.Annotations = map[string]string{"org.opencontainers.image.title": "sbom.spdx.json"}
	config, size, err := v1.SHA256(bytes.NewReader([]byte(emptyConfig)))
	if err != nil {
		return nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: sbomType,
		Config:  v1.Descriptor{MediaType: emptyConfigType, Digest: config, Size: size},
		Layers:  []v1.Descriptor{*content},
		Subject: &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

// RawConfigFile implements partial.CompressedImageCore.
func (artifact) RawConfigFile() ([]byte, error) { return []byte(emptyConfig), nil }

// MediaType implements partial.CompressedImageCore.
func (artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	manifestDigest, err := a.content.Digest()
	if err != nil {
		return nil, err
	}
	if digest == manifestDigest {
		return a.content, nil
	}
	config, err := partial.ConfigLayer(a)
	if err != nil {
		return nil, err
	}
	if of, err := config.Digest(); err != nil || of != digest {
		return nil, fmt.Errorf("the artifact has no file %s", digest)
	}
	return config, nil
}
