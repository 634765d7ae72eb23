package release

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/windows-machine-config/wmco/hack/payload/release/releasetest"
)

const (
	program = "root/windows/hybrid-overlay-node.exe"
	content = "MZ the program of the release"
)

// newComponentImage returns an image like OVN-Kubernetes, which contains the Windows program next to Linux programs.
func newComponentImage(t *testing.T) v1.Image {
	t.Helper()
	return releasetest.Image(t, "amd64", "", []releasetest.Entry{releasetest.Directory("usr"), releasetest.File("usr/bin/oc", "oc")},
		[]releasetest.Entry{releasetest.Directory("root"), releasetest.Directory("root/windows"), releasetest.File(program, content)},
		[]releasetest.Entry{releasetest.File("usr/bin/ovnkube", "ovnkube")})
}

// server is a registry that records the requested names.
type server struct {
	host           string
	mu             sync.Mutex
	requestedNames []string
}

func newServer(t *testing.T, allow func(*http.Request) bool) *server {
	t.Helper()
	s := &server{}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requestedNames = append(s.requestedNames, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if !allow(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s.host = strings.TrimPrefix(web.URL, "http://")
	return s
}

func allowEveryRequest(*http.Request) bool { return true }

func (s *server) hasRequest(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.requestedNames, func(line string) bool { return strings.Contains(line, part) })
}

// pushImage pushes an image to the registry, and returns its name by digest.
func (s *server) pushImage(t *testing.T, repository string, image v1.Image) string {
	t.Helper()
	tag, err := name.NewTag(s.host + "/" + repository + ":pushed")
	requireNoError(t, err)
	requireNoError(t, remote.Write(tag, image, remote.WithContext(t.Context())))
	return s.host + "/" + repository + "@" + digestOf(t, image)
}

func digestOf(t *testing.T, image interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := image.Digest()
	requireNoError(t, err)
	return digest.String()
}

// publishRelease publishes a release in a registry, and returns the name of its image.
func publishRelease(t *testing.T, s *server, ovn v1.Image) string {
	t.Helper()
	reference := s.pushImage(t, "openshift-release-dev/ocp-v4.0-art-dev", ovn)
	return s.pushImage(t, "openshift-release-dev/ocp-release", releasetest.Release(t, "amd64",
		map[string]string{"ovn-kubernetes": reference, "cli": reference}))
}

// writeLayout writes images into a directory.
func writeLayout(t *testing.T, images ...v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "release")
	path, err := layout.Write(dir, empty.Index)
	requireNoError(t, err)
	for _, i := range images {
		requireNoError(t, path.AppendImage(i))
	}
	return dir
}

// extractComponentFile returns the content that File writes.
func extractComponentFile(t *testing.T, source, mirrors string) (string, Origin, error) {
	t.Helper()
	r, err := Open(t.Context(), source, mirrors)
	if err != nil {
		return "", Origin{}, err
	}
	destination := filepath.Join(t.TempDir(), "program.exe")
	origin, err := r.File(t.Context(), "ovn-kubernetes", program, destination)
	if err != nil {
		if _, statErr := os.Stat(destination); statErr == nil {
			t.Error("a file is left although it failed")
		}
		return "", Origin{}, err
	}
	data, err := os.ReadFile(destination)
	requireNoError(t, err)
	return string(data), origin, nil
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
