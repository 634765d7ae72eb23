package operatorimage

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/windows-machine-config/wmco/internal/payload"
)

// images is a registry that notes what is read from it.
type images struct {
	name string
	mu   sync.Mutex
	read []string
}

func newImages(t *testing.T) *images {
	t.Helper()
	r := &images{}
	behind := registry.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if request.Method == http.MethodGet {
			r.read = append(r.read, request.URL.Path)
		}
		behind.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.name = strings.TrimPrefix(server.URL, "http://") + "/windows/operator:1"
	return r
}

// layer is a layer of an image with these files, and what its history says of it.
type layer struct {
	comment string
	files   map[string]string
}

// push pushes an image, and returns the digests of its layers.
func (r *images) push(t *testing.T, layers ...layer) (digests []string) {
	t.Helper()
	image := v1.Image(empty.Image)
	for _, each := range layers {
		var content bytes.Buffer
		archive := tar.NewWriter(&content)
		for path, text := range each.files {
			if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(archive, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		digest, err := added.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
		if image, err = mutate.Append(image, mutate.Addendum{Layer: added, History: v1.History{Comment: each.comment}}); err != nil {
			t.Fatal(err)
		}
	}
	image, err := mutate.ConfigFile(image, withPlatform(t, image))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(r.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = nil
	return digests
}

func withPlatform(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	return config
}

// hasRead reports whether a layer was read.
func (r *images) hasRead(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.read {
		if strings.HasSuffix(path, "/blobs/"+digest) {
			return true
		}
	}
	return false
}

func TestNoMoreThanTheLayerOfTheManifestIsRead(t *testing.T) {
	r := newImages(t)
	digests := r.push(t, layer{"component kubelet v1", map[string]string{"payload/store/abc.zst": "large"}},
		layer{payload.ManifestLayer, map[string]string{"payload/manifest.json": `{"schema":1}`, "payload/store/agent": "program"}},
		layer{"the operator 1.2.3", map[string]string{"usr/bin/wmco": "large too"}})
	manifest, err := Manifest(t.Context(), r.name)
	if err != nil || string(manifest) != `{"schema":1}` {
		t.Fatalf("it is %s, %v", manifest, err)
	}
	if r.hasRead(digests[0]) || r.hasRead(digests[2]) || !r.hasRead(digests[1]) {
		t.Errorf("of the layers %v it has read %v", digests, r.read)
	}
}

func TestAnImageThatOthersHaveMadeIsSearchedFromItsTop(t *testing.T) {
	r := newImages(t)
	r.push(t, layer{"", map[string]string{"payload/manifest.json": "old"}}, layer{"", map[string]string{"./payload/manifest.json": "new"}},
		layer{"", map[string]string{"etc/payload/manifest.json": "another"}})
	if manifest, err := Manifest(t.Context(), r.name); err != nil || string(manifest) != "new" {
		t.Errorf("it is %s, %v", manifest, err)
	}
}

func TestWhyAnImageTellsNoManifest(t *testing.T) {
	r := newImages(t)
	r.push(t, layer{"", map[string]string{"usr/bin/something": "else"}})
	for image, says := range map[string]string{
		r.name:       "it is not an image of this operator",
		r.name + "0": "Log in with podman login or docker login",
		"UPPER case": "is not the name of an image",
		"":           "is not the name of an image",
	} {
		if _, err := Manifest(t.Context(), image); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", image, err, says)
		}
	}
}
