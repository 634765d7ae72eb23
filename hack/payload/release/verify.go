package release

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// errDigest is the error for content with an unexpected digest.
var errDigest = errors.New("the content does not have this digest: it is damaged, or somebody changed it")

func checkDigest(sum hash.Hash, digest v1.Hash) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest.Hex {
		return fmt.Errorf("%w (it has sha256:%s)", errDigest, got)
	}
	return nil
}

// layersOf returns the layers, the lowest first, from a manifest with the image's digest. A registry client
// verifies this digest itself, an OCI layout does not.
func layersOf(image registry.Image) ([]layer, error) {
	raw, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write(raw)
	if err := checkDigest(sum, image.Digest); err != nil {
		return nil, fmt.Errorf("image %s: %w", image.Digest, err)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	var layers []layer
	for _, d := range manifest.Layers {
		l, err := image.LayerByDigest(d.Digest)
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", d.Digest, err)
		}
		layers = append(layers, layer{Layer: l, digest: d.Digest})
	}
	return layers, nil
}

// stream is the uncompressed content of a layer.
type stream struct {
	io.ReadCloser

	compressed *summed
	digest     v1.Hash
}

// verifyDigest reads the layer to the end, and compares the digest.
func (s stream) verifyDigest() error {
	if _, err := io.Copy(io.Discard, s.compressed); err != nil {
		return err
	}
	return checkDigest(s.compressed.sum, s.digest)
}

// readError returns the reason why a layer cannot be read. A wrong digest explains all other errors.
func (s stream) readError(err error) error {
	return cmp.Or(s.verifyDigest(), err)
}

func (l layer) openStream() (stream, error) {
	compressed, err := l.Compressed()
	if err != nil {
		return stream{}, err
	}
	tee := &summed{ReadCloser: compressed, sum: sha256.New()}
	extended, err := partial.CompressedToLayer(once{layer: l, content: tee})
	if err != nil {
		return stream{}, errors.Join(err, tee.Close())
	}
	content, err := extended.Uncompressed()
	if err != nil {
		return stream{}, errors.Join(err, tee.Close())
	}
	return stream{ReadCloser: content, compressed: tee, digest: l.digest}, nil
}

// summed computes the digest of the content that is read.
type summed struct {
	io.ReadCloser

	sum hash.Hash
}

// Read implements io.Reader.
func (s *summed) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	s.sum.Write(b[:n])
	return n, err
}

// once is a layer that can be read once. It implements partial.CompressedLayer.
type once struct {
	layer

	content io.ReadCloser
}

// Compressed implements partial.CompressedLayer.
func (o once) Compressed() (io.ReadCloser, error) { return o.content, nil }

// Digest implements partial.CompressedLayer.
func (o once) Digest() (v1.Hash, error) { return o.digest, nil }

// Size implements partial.CompressedLayer.
func (o once) Size() (int64, error) { return o.Layer.Size() }

// MediaType implements partial.CompressedLayer.
func (o once) MediaType() (types.MediaType, error) { return o.Layer.MediaType() }
