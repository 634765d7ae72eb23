package main

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// someBase returns an image with a file, a label, a variable and a command, in Docker's format.
func someBase(t *testing.T, p v1.Platform) v1.Image {
	t.Helper()
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	content := "base of " + p.String()
	requireNoError(t, w.WriteHeader(&tar.Header{Name: "etc/release", Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write([]byte(content))
	requireNoError(t, err)
	requireNoError(t, w.Close())
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data.Bytes())), nil
	})
	requireNoError(t, err)
	image, err := mutate.AppendLayers(empty.Image, l)
	requireNoError(t, err)
	config, err := image.ConfigFile()
	requireNoError(t, err)
	config.OS, config.Architecture = p.OS, p.Architecture
	config.Config = v1.Config{Cmd: []string{"/bin/bash"}, Env: []string{"PATH=/usr/sbin:/usr/bin"}, User: "root",
		Labels: map[string]string{"architecture": p.Architecture, "version": "9.6"}}
	image, err = mutate.ConfigFile(image, config)
	requireNoError(t, err)
	return image
}

var amd64, arm64 = v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "arm64"}

func newBaseIndex(t *testing.T, platforms ...v1.Platform) v1.ImageIndex {
	t.Helper()
	all := v1.ImageIndex(empty.Index)
	for _, p := range platforms {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: someBase(t, p), Descriptor: v1.Descriptor{Platform: &p}})
	}
	return all
}

// checkBuiltOn checks that an image consists of a base and the other layers, and includes the name of the base if
// there is one.
func checkBuiltOn(t *testing.T, m builtImage, name string) {
	t.Helper()
	for platform, image := range m.images {
		entries := unpackImage(t, image)
		if entries["etc/release"].content != "base of "+platform || entries["usr/bin/wmco"].content == "" ||
			entries["payload/manifest.json"].content == "" {
			t.Errorf("the image for %s has %d files", platform, len(entries))
		}
		if _, hasCertificates := entries[certificatesPath]; hasCertificates {
			t.Error("the certificate authorities of the base are covered")
		}
		config, err := image.ConfigFile()
		requireNoError(t, err)
		c := config.Config
		if c.Labels["architecture"] == "" || c.Labels["version"] != testVersion || c.User != user || c.Cmd != nil ||
			!slices.Equal(c.Env, []string{"PATH=/usr/sbin:/usr/bin"}) {
			t.Errorf("the configuration is %+v", c)
		}
		manifest, err := image.Manifest()
		requireNoError(t, err)
		for _, l := range manifest.Layers {
			if strings.Contains(string(l.MediaType), "docker") {
				t.Errorf("a layer of an OCI image is %s", l.MediaType)
			}
		}
		if len(config.History) != len(manifest.Layers) {
			t.Errorf("the history of %d layers has %d lines", len(manifest.Layers), len(config.History))
		}
		if manifest.Annotations["org.opencontainers.image.base.digest"] == "" {
			t.Error("the image does not name its base")
		}
		if got, has := manifest.Annotations["org.opencontainers.image.base.name"]; got != name || has != (name != "") {
			t.Errorf("the image says that its base is %q", got)
		}
	}
}

func TestImage_IsBuiltOnBase(t *testing.T) {
	t.Run("in a folder", func(t *testing.T) {
		o := writeInputs(t, parts{})
		o.base = filepath.Join(t.TempDir(), "base")
		path, err := layout.Write(o.base, empty.Index)
		requireNoError(t, err)
		requireNoError(t, path.AppendIndex(newBaseIndex(t, amd64, arm64)))
		checkBuiltOn(t, buildImage(t, o), "")
	})
	server := httptest.NewServer(registry.New(silent))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	t.Run("in a registry", func(t *testing.T) {
		o := writeInputs(t, parts{})
		o.base = host + "/base:9"
		tag, err := name.NewTag(o.base)
		requireNoError(t, err)
		requireNoError(t, remote.WriteIndex(tag, newBaseIndex(t, amd64, arm64)))
		checkBuiltOn(t, buildImage(t, o), o.base)
	})
	t.Run("and one that is for one platform only serves that", func(t *testing.T) {
		o := writeInputs(t, parts{})
		o.base = host + "/base:single"
		o.operators = o.operators[:1]
		tag, err := name.NewTag(o.base)
		requireNoError(t, err)
		requireNoError(t, remote.Write(tag, someBase(t, amd64)))
		checkBuiltOn(t, buildImage(t, o), o.base)
	})
}
