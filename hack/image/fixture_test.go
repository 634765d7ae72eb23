package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/windows-machine-config/wmco/internal/payload"
)

const testVersion = "12.3.4"

// operators returns programs by platform that are recognized as the operator and do nothing. All tests share them.
var operators = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "wmco-test-operator-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, content := range map[string]string{
		"go.mod":           "module github.com/windows-machine-config/wmco\n\ngo 1.26.0\n",
		"cmd/wmco/main.go": "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
		if err != nil {
			return nil, err
		}
	}
	programs := map[string][]byte{}
	for _, architecture := range []string{"amd64", "arm64"} {
		build := exec.Command("go", "build", "-trimpath", "-o", architecture, "./cmd/wmco")
		build.Dir = dir
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOWORK=off",
			"GOFLAGS=-buildvcs=false")
		if output, err := build.CombinedOutput(); err != nil {
			return nil, errors.Join(err, errors.New(string(output)))
		}
		if programs["linux/"+architecture], err = os.ReadFile(filepath.Join(dir, architecture)); err != nil {
			return nil, err
		}
	}
	return programs, nil
})

// parts describes the payload of a test. The zero value is a complete payload.
type parts struct {
	agent, kubelet string
	absent         bool // hybrid-overlay-node
}

// writeInputs writes the inputs of an image into a new directory.
func writeInputs(t *testing.T, with parts) options {
	t.Helper()
	dir := t.TempDir()
	programs, err := operators()
	if err != nil {
		t.Fatal(err)
	}
	o := options{payload: filepath.Join(dir, "payload"), agent: filepath.Join(dir, "wicd.exe"), version: testVersion,
		output: filepath.Join(dir, "out", "image"), create: createFile}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		file := filepath.Join(dir, filepath.Base(platform))
		write(t, file, string(programs[platform]))
		if err := o.operators.Set(platform + "=" + file); err != nil {
			t.Fatal(err)
		}
	}
	write(t, o.agent, newProgramText("agent "+with.agent))
	build := payload.Build{Version: testVersion, Components: []payload.Source{
		newComponent(payload.ComponentAgent, testVersion, "wicd.exe", newProgramText("agent "+with.agent)),
		newComponent("kubelet", "v1.36.3", "kubelet.exe", newProgramText("kubelet "+with.kubelet)),
	}}
	if with.absent {
		build.Absent = []payload.Absent{{Name: "hybrid-overlay-node",
			Reason: "list it in the file of `make payload EXTERNAL=file`"}}
	} else {
		build.Components = append(build.Components, newComponent("hybrid-overlay-node", "v4.20.1",
			"hybrid-overlay-node.exe", newProgramText("hybrid-overlay-node")))
	}
	if _, err := payload.Write(o.payload, build); err != nil {
		t.Fatal(err)
	}
	return o
}

// newProgramText returns a text as large as a program, because the payload's format has a minimum size.
func newProgramText(text string) string {
	return "MZ " + text + strings.Repeat(" This program cannot be run in DOS mode.", 50)
}

func newComponent(name, version, file, content string) payload.Source {
	return payload.Source{
		Component: payload.Component{Name: name, Version: version, Source: "example.org/" + name + "@" + version,
			Required: true, Files: []payload.File{{Path: file}}},
		Content: []func() (io.ReadCloser, error){func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte(content))), nil
		}},
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// builtImage is an image in its layout.
type builtImage struct {
	digest v1.Hash
	root   v1.ImageIndex
	images map[string]v1.Image // by platform
	sbom   v1.Image
}

// buildImage builds and reads the image.
func buildImage(t *testing.T, o options) builtImage {
	t.Helper()
	if err := run(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	return read(t, o.output)
}

func read(t *testing.T, output string) builtImage {
	t.Helper()
	path, err := layout.FromPath(output)
	requireNoError(t, err)
	m := builtImage{images: map[string]v1.Image{}}
	m.root, err = path.ImageIndex()
	requireNoError(t, err)
	manifest, err := m.root.IndexManifest()
	requireNoError(t, err)
	if len(manifest.Manifests) != 2 || !manifest.Manifests[0].MediaType.IsIndex() {
		t.Fatalf("the layout has %+v", manifest.Manifests)
	}
	m.digest = manifest.Manifests[0].Digest
	index, err := m.root.ImageIndex(m.digest)
	requireNoError(t, err)
	m.sbom, err = m.root.Image(manifest.Manifests[1].Digest)
	requireNoError(t, err)
	inner, err := index.IndexManifest()
	requireNoError(t, err)
	for _, d := range inner.Manifests {
		m.images[d.Platform.String()], err = index.Image(d.Digest)
		requireNoError(t, err)
	}
	return m
}

// entry is a file or a directory of an image.
type entry struct {
	tar.Header
	content string
}

// unpackImage returns the file system of a container of the image, by path.
func unpackImage(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	entries := map[string]entry{}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		requireNoError(t, err)
		content, err := io.ReadAll(reader)
		requireNoError(t, err)
		entries[header.Name] = entry{*header, string(content)}
	}
}

// layersOf returns the digests of an image's layers.
func layersOf(t *testing.T, image v1.Image) (digests []string) {
	t.Helper()
	manifest, err := image.Manifest()
	requireNoError(t, err)
	for _, l := range manifest.Layers {
		digests = append(digests, l.Digest.String())
	}
	return digests
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
