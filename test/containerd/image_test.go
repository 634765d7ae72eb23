package containerd

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	imageregistry "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// serveImage serves one image until the test ends, and returns the image name. The only program of the image waits.
func serveImage(t *testing.T) (image string) {
	t.Helper()
	server := httptest.NewServer(imageregistry.New(imageregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	image = strings.TrimPrefix(server.URL, "http://") + "/idle:1"
	self, err := os.Executable()
	requireNoError(t, err)
	program, err := os.ReadFile(self)
	requireNoError(t, err)
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	requireNoError(t, writer.WriteHeader(&tar.Header{Name: "idle", Mode: 0o755, Size: int64(len(program))}))
	_, err = writer.Write(program)
	requireNoError(t, err)
	requireNoError(t, writer.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	requireNoError(t, err)
	built, err := mutate.AppendLayers(empty.Image, layer)
	requireNoError(t, err)
	built, err = mutate.ConfigFile(built, configOf(t, built))
	requireNoError(t, err)
	reference, err := name.ParseReference(image)
	requireNoError(t, err)
	requireNoError(t, remote.Write(reference, built))
	return image
}

func configOf(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	file, err := image.ConfigFile()
	requireNoError(t, err)
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Config = v1.Config{Entrypoint: []string{"/idle"}, Env: []string{idleVariable + "=yes"}}
	return file
}
