package operatorimage

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	name     string
	mu       sync.Mutex
	read     []string
	password string // without which nothing is read; empty for none
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
		if _, password, _ := request.BasicAuth(); password != r.password {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
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
	byOther bool // it was not made by hack/image
}

// push pushes an image, and returns the digests of its layers.
func (r *images) push(t *testing.T, layers ...layer) (digests []string) {
	t.Helper()
	image := empty.Image
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
		history := v1.History{Comment: each.comment, CreatedBy: payload.ImageBuilder}
		if each.byOther {
			history.CreatedBy = "COPY . /"
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: added, History: history}); err != nil {
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
	digests := r.push(t, layer{comment: "component kubelet v1", files: map[string]string{"payload/store/abc.zst": "large"}},
		layer{comment: payload.ManifestLayer, files: map[string]string{"payload/manifest.json": `{"schema":1}`, "payload/store/agent": "program"}},
		layer{comment: "the operator 1.2.3", files: map[string]string{"usr/bin/wmco": "large too"}})
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
	r.push(t, layer{files: map[string]string{"payload/manifest.json": `{"of":"old"}`}}, layer{files: map[string]string{"./payload/manifest.json": `{"of":"new"}`}},
		layer{files: map[string]string{"etc/payload/manifest.json": `{"of":"another"}`}})
	if manifest, err := Manifest(t.Context(), r.name); err != nil || string(manifest) != `{"of":"new"}` {
		t.Errorf("it is %s, %v", manifest, err)
	}
}

func TestAManifestThatALaterLayerOfOthersHasIsTaken(t *testing.T) {
	r := newImages(t)
	r.push(t, layer{comment: payload.ManifestLayer, files: map[string]string{"payload/manifest.json": `{"of":"us"}`}},
		layer{comment: "the operator 1.2.3", files: map[string]string{"usr/bin/wmco": "program"}},
		layer{files: map[string]string{"payload/manifest.json": `{"of":"others"}`}, byOther: true})
	if manifest, err := Manifest(t.Context(), r.name); err != nil || string(manifest) != `{"of":"others"}` {
		t.Errorf("it is %s, %v", manifest, err)
	}
}

func TestAManifestThatIsNoDocumentIsRefused(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "cut off": `{"schema":1,`, "no object": "12", "two": `{}{}`} {
		t.Run(name, func(t *testing.T) {
			r := newImages(t)
			r.push(t, layer{files: map[string]string{"payload/manifest.json": content}})
			if manifest, err := Manifest(t.Context(), r.name); err == nil || !strings.Contains(err.Error(), "is not a JSON object") {
				t.Errorf("it is %s, %v", manifest, err)
			}
		})
	}
}

func TestALayerThatUnpacksToTooMuchIsRefused(t *testing.T) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	if err := archive.WriteHeader(&tar.Header{Name: "large", Size: 1 << 20, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	large, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifestInLayer(large, 1<<20); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("the error is %v", err)
	}
	if manifest, err := manifestInLayer(large, 2<<20); err != nil || manifest != nil {
		t.Errorf("one that is smaller gives %s, %v", manifest, err)
	}
}

func TestTheLoginIsThatOfTheFileThatIsNamed(t *testing.T) {
	r := newImages(t)
	r.push(t, layer{files: map[string]string{"payload/manifest.json": `{"schema":1}`}})
	r.password = "secret"
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", home)
	registryName, _, _ := strings.Cut(r.name, "/")
	for file, password := range map[string]string{"config.json": "old", "auth.json": "secret"} {
		content := `{"auths":{"` + registryName + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("me:"+password)) + `"}}}`
		if err := os.WriteFile(filepath.Join(home, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if manifest, err := Manifest(t.Context(), r.name); err == nil {
		t.Fatalf("docker's login, which is wrong, has brought %s", manifest)
	}
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(home, "auth.json"))
	if manifest, err := Manifest(t.Context(), r.name); err != nil || string(manifest) != `{"schema":1}` {
		t.Errorf("it is %s, %v", manifest, err)
	}
}

func TestWhyAnImageTellsNoManifest(t *testing.T) {
	r := newImages(t)
	r.push(t, layer{files: map[string]string{"usr/bin/something": "else"}})
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
