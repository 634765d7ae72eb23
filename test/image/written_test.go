package image

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
)

// contents describes the input of an image.
type contents struct {
	version  string
	operator string // the program; that of `make build` when empty
	agent    string // the program; a fake agent when empty
	payload  labpayload.Options
	base     string
}

// written is an image with its layout and payload.
type written struct {
	layoutOf
	payload string
}

// writeImage writes and opens an image of the operator with the lab's payload.
func writeImage(t *testing.T, c contents) written {
	t.Helper()
	dir := t.TempDir()
	w := written{payload: filepath.Join(dir, "payload"), layoutOf: layoutOf{directory: filepath.Join(dir, "image"), tag: c.version}}
	p, err := labpayload.Generate(w.payload, c.agent, c.version, c.payload)
	if err != nil {
		t.Fatal(err)
	}
	output, err := runCommand(t.Context(), nil, os.Getenv(imageProgram), "-operator",
		"linux/"+runtime.GOARCH+"="+cmp.Or(c.operator, "build/wmco"), "-payload", w.payload, "-agent", agentIn(t, p),
		"-version", c.version, "-base", c.base, "-output", w.directory)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	path, err := layout.FromPath(w.directory)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	w.image = firstImage(t, outer)
	return w
}

// agentIn writes the agent of a payload to a file.
func agentIn(t *testing.T, p *payload.Payload) string {
	t.Helper()
	agent, err := p.Agent()
	if err != nil {
		t.Fatal(err)
	}
	content, err := p.Open(agent.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wicd.exe")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// firstImage returns the first image of the first index in an index.
func firstImage(t *testing.T, outer v1.ImageIndex) v1.Image {
	t.Helper()
	manifest, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	first := manifest.Manifests[0]
	if first.MediaType.IsIndex() {
		inner, err := outer.ImageIndex(first.Digest)
		if err != nil {
			t.Fatal(err)
		}
		return firstImage(t, inner)
	}
	image, err := outer.Image(first.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}
