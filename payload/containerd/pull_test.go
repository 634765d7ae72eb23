package containerd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/containerd/v2/plugins/content/local"
	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// publicRegistry has one image, under every name, and gives it to anyone. It records who sends credentials.
type publicRegistry struct {
	*httptest.Server
	manifest ocispec.Descriptor
	blobs    map[godigest.Digest][]byte

	mutex    sync.Mutex
	asked    []string // "host path"
	identity []string // credentials that came
}

func newPublicRegistry(t *testing.T) *publicRegistry {
	t.Helper()
	r := &publicRegistry{blobs: map[godigest.Digest][]byte{}}
	add := func(kind string, data []byte) ocispec.Descriptor {
		sum := godigest.FromBytes(data)
		r.blobs[sum] = data
		return ocispec.Descriptor{MediaType: kind, Digest: sum, Size: int64(len(data))}
	}
	encode := func(value any) []byte {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	platform := ocispec.Platform{OS: "windows", Architecture: "amd64", OSVersion: "10.0.20348.681"}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: add(ocispec.MediaTypeImageConfig,
		encode(ocispec.Image{Platform: platform}))}
	manifest.SchemaVersion = 2
	for _, layer := range []string{"the base layer of a Windows image", "a layer on it"} {
		manifest.Layers = append(manifest.Layers, add(ocispec.MediaTypeImageLayerGzip, []byte(layer)))
	}
	r.manifest = add(ocispec.MediaTypeImageManifest, encode(manifest))
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *publicRegistry) serve(w http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.asked = append(r.asked, request.Host+" "+request.URL.Path)
	if authorization := request.Header.Get("Authorization"); authorization != "" {
		r.identity = append(r.identity, authorization)
	}
	last := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	sum, kind := godigest.Digest(last), "application/octet-stream"
	if strings.Contains(request.URL.Path, "/manifests/") {
		sum, kind = r.manifest.Digest, r.manifest.MediaType
	}
	data, found := r.blobs[sum]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", sum.String())
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if request.Method != http.MethodHead {
		_, _ = w.Write(data) // whoever asked may be gone
	}
}

// pull brings an image as containerd does with the registries of the folder, up to where a layer is unpacked.
func (r *publicRegistry) pull(ctx context.Context, t *testing.T, folder, image string) content.Store {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AddCert(r.Certificate())
	options := config.HostOptions{HostDir: config.HostDirFromRoot(folder), UpdateClient: func(client *http.Client) error {
		transport := client.Transport.(*http.Transport)
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", r.Listener.Addr().String())
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities, ServerName: "example.com", MinVersion: tls.VersionTLS12} // the test server's names
		return nil
	}}
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: config.ConfigureHosts(ctx, options)})
	name, found, err := resolver.Resolve(ctx, image)
	if err != nil {
		t.Fatal(err)
	}
	fetcher, err := resolver.Fetcher(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	store, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := images.Dispatch(ctx, images.Handlers(remotes.FetchHandler(store, fetcher), images.ChildrenHandler(store)),
		nil, found); err != nil {
		t.Fatal(err)
	}
	return store
}

//
func TestPull_PublicImageUsesNoCredentials(t *testing.T) {
	const image = "mcr.microsoft.com/windows/servercore:ltsc2022"
	for name, folder := range map[string]string{
		"of a cluster that says nothing of registries":                 t.TempDir(),
		"of a cluster that allows this one, and has mirrors of others": testdata + "/registries",
	} {
		t.Run(name, func(t *testing.T) {
			r := newPublicRegistry(t)
			store := r.pull(t.Context(), t, folder, image)
			for sum, want := range r.blobs {
				got, err := content.ReadBlob(t.Context(), store, ocispec.Descriptor{Digest: sum, Size: int64(len(want))})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s is %q: %v", sum, got, err)
				}
			}
			if i := slices.IndexFunc(r.asked, func(request string) bool {
				return !strings.HasPrefix(request, "mcr.microsoft.com /v2/windows/servercore/")
			}); i >= 0 {
				t.Errorf("asked was %s", r.asked[i])
			}
			if len(r.identity) > 0 {
				t.Errorf("credentials were sent: %q", r.identity)
			}
		})
	}
}
