package agent_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

func archiveOf(t *testing.T, content []byte) []byte {
	t.Helper()
	source := payload.Source{Component: payload.Component{Name: "patches", Version: "v1", Source: "test", Required: true, StandIn: true}}
	source.Files = []payload.File{{Path: "one.patch"}}
	source.Content = []func() (io.ReadCloser, error){func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
	p, err := payload.Write(t.TempDir(), payload.Build{Version: "1.0.0", WindowBytes: 1 << 20, Components: []payload.Source{source, agentSource()}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	archive, err := p.Archive([]string{hexDigest(content)})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if _, err := b.ReadFrom(archive.Reader()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func agentSource() payload.Source { return newSource("wicd", "v1", []string{"wicd.exe"}) }

func patchOf(t *testing.T, from, to []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := payload.CreatePatch(&b, from, to); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPatch_CreatesReleaseFileFromFormerFile(t *testing.T) {
	t.Parallel()
	before, after := programContent("kubelet.exe", "v1"), programContent("kubelet.exe", "v2")
	apply := func(r *rig, archive []byte) agentapi.Line {
		r.Helper()
		r.versions = versions{"kubelet": "v2"}
		data, err := r.fullSpec().Encode()
		r.must(err)
		specPath, archivePath := nodespec.InboxSpec(hexDigest(data)), nodespec.InboxPayload(hexDigest(archive))
		r.must(r.Drive().MkdirAll(nodespec.InboxRoot))
		r.must(r.Drive().WriteFile(specPath, data))
		r.must(r.Drive().WriteFile(archivePath, archive))
		line, _ := r.run("apply", "--spec", specPath, "--payload", archivePath)
		return line
	}
	t.Run("makes the new one", func(t *testing.T) {
		r := newConfiguredRig(t)
		if line := apply(r, archiveOf(t, patchOf(t, before, after))); line.Type != agentapi.TypeResult {
			t.Fatalf("%s %v", line.Type, line.Failure)
		}
		path := versions{"kubelet": "v2"}.releaseOf("kubelet").Directory + `\kubelet.exe`
		if data, _ := r.Drive().ReadFile(path); !bytes.Equal(data, after) {
			t.Errorf("%s is not the new file", path)
		}
	})
	t.Run("is left when the old one is not what its name says, and the host can be sent the file", func(t *testing.T) {
		r := newConfiguredRig(t)
		r.must(r.Drive().MkdirAll(nodespec.IncomingRoot))
		r.must(r.Drive().WriteFile(nodespec.IncomingRoot+`\`+hexDigest([]byte("another")), []byte("cut")))
		if line := apply(r, archiveOf(t, patchOf(t, []byte("another"), after))); line.Type != agentapi.TypeFailure {
			t.Fatalf("%s", line.Type)
		}
		r.mustApply(r.fullSpec())
	})
	for name, patch := range map[string][]byte{
		"made for a file that the host has not": patchOf(t, []byte("another"), after),
		"to a file that nobody wants":           patchOf(t, before, []byte("another")),
	} {
		t.Run(name+" is left, and the host can be sent the file", func(t *testing.T) {
			r := newConfiguredRig(t)
			if line := apply(r, archiveOf(t, patch)); line.Type != agentapi.TypeFailure {
				t.Fatalf("%s", line.Type)
			}
			r.mustApply(r.fullSpec())
		})
	}
}
