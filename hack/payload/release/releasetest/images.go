// Package releasetest creates images of an OpenShift release for tests, with the same structure as real images, and
// with a size of a few bytes.
package releasetest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The structure of a release image is repeated here, so that tests detect a change in the program.
const (
	Version        = "4.20.1"
	Label          = "io.openshift.release"
	ReferencesPath = "release-manifests/image-references"
)

// File returns an executable file.
func File(name, text string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755}, text}
}

// Directory returns a directory.
func Directory(name string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, ""}
}

// Symlink returns a symbolic link.
func Symlink(name, target string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}, ""}
}

// HardLink returns a hard link to a file of the same layer.
func HardLink(name, target string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}, ""}
}

// Entry is an entry of a layer.
type Entry struct {
	tar.Header

	text string
}

// Image returns an image with these layers, the lowest first. The image of a release has the version as a label.
func Image(t testing.TB, architecture, version string, layers ...[]Entry) v1.Image {
	t.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: architecture})
	requireNoError(t, err)
	if version != "" {
		image, err = mutate.Config(image, v1.Config{Labels: map[string]string{Label: version}})
		requireNoError(t, err)
	}
	for _, entries := range layers {
		image, err = mutate.AppendLayers(image, layerOf(t, entries))
		requireNoError(t, err)
	}
	return image
}

func layerOf(t testing.TB, entries []Entry) v1.Layer {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		e.Size = int64(len(e.text))
		requireNoError(t, w.WriteHeader(&e.Header))
		_, err := io.WriteString(w, e.text)
		requireNoError(t, err)
	}
	requireNoError(t, w.Close())
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
	requireNoError(t, err)
	return l
}

// referencesFile returns the file of a release that names its images.
func referencesFile(t testing.TB, images map[string]string) string {
	t.Helper()
	var tags []any
	for tag, reference := range images {
		tags = append(tags, map[string]any{"name": tag, "generation": nil, "importPolicy": map[string]any{},
			"annotations": map[string]string{"io.openshift.build.source-location": "https://example.org/" + tag},
			"from":        map[string]string{"kind": "DockerImage", "name": reference}})
	}
	data, err := json.Marshal(map[string]any{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
		"metadata": map[string]any{"name": Version, "creationTimestamp": "2026-10-01T00:00:00Z"},
		"spec":     map[string]any{"lookupPolicy": map[string]any{"local": false}, "tags": tags}})
	requireNoError(t, err)
	return string(data)
}

// Release returns the release image for these component images.
func Release(t testing.TB, architecture string, images map[string]string) v1.Image {
	t.Helper()
	return Image(t, architecture, Version, []Entry{File("usr/bin/cluster-version-operator", "cvo")},
		[]Entry{Directory("release-manifests"), File("release-manifests/release-metadata", "{}"),
			File(ReferencesPath, referencesFile(t, images))})
}

func requireNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
