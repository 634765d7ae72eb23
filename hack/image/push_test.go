package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// silent disables the log of a registry.
var silent = registry.Logger(log.New(io.Discard, "", 0))

func TestPush_PushesImageWithSBOM(t *testing.T) {
	server := httptest.NewServer(registry.New(silent))
	defer server.Close()
	o := writeInputs(t, parts{})
	o.image = strings.TrimPrefix(server.URL, "http://") + "/team/wmco:dev"
	var output bytes.Buffer
	requireNoError(t, run(t.Context(), o, &output))
	m := read(t, o.output)
	tag, err := name.NewTag(o.image)
	requireNoError(t, err)
	t.Run("the registry has it under its tag, for all platforms", func(t *testing.T) {
		pushed, err := remote.Index(tag)
		requireNoError(t, err)
		digest, err := pushed.Digest()
		requireNoError(t, err)
		if digest != m.digest {
			t.Errorf("pushed %s, and the layout has %s", digest, m.digest)
		}
		for platform, image := range m.images {
			want, err := image.Digest()
			requireNoError(t, err)
			got, err := remote.Image(tag.Context().Digest(want.String()))
			requireNoError(t, err)
			if unpackImage(t, got)["usr/bin/wmco"].content == "" {
				t.Errorf("the one for %s has no operator", platform)
			}
		}
	})
	t.Run("the last line is the name with the digest", func(t *testing.T) {
		want := "pushed " + o.image + "\n" + strings.TrimSuffix(o.image, ":dev") + "@" + m.digest.String() + "\n"
		if !strings.HasSuffix(output.String(), want) {
			t.Errorf("it says %s, want %s", output.String(), want)
		}
	})
	// This registry does not list referrers, so the client stores the list under a tag, as OCI defines.
	t.Run("the SBOM is found from the image", func(t *testing.T) {
		referrers, err := remote.Referrers(tag.Context().Digest(m.digest.String()))
		requireNoError(t, err)
		list, err := referrers.IndexManifest()
		requireNoError(t, err)
		if len(list.Manifests) != 1 || list.Manifests[0].ArtifactType != "application/spdx+json" {
			t.Fatalf("the registry lists %+v", list.Manifests)
		}
		artifact, err := remote.Image(tag.Context().Digest(list.Manifests[0].Digest.String()))
		requireNoError(t, err)
		beside, err := os.ReadFile(sbomPath(o.output))
		requireNoError(t, err)
		if got := readSingleFile(t, artifact); !bytes.Equal(got, beside) {
			t.Errorf("it is another one than that beside the layout: %d and %d bytes", len(got), len(beside))
		}
	})
}

// readSingleFile returns the only file of an artifact.
func readSingleFile(t *testing.T, artifact v1.Image) []byte {
	t.Helper()
	layers, err := artifact.Layers()
	requireNoError(t, err)
	if len(layers) != 1 {
		t.Fatalf("it has %d files", len(layers))
	}
	stream, err := layers[0].Uncompressed()
	requireNoError(t, err)
	defer stream.Close()
	var data bytes.Buffer
	_, err = data.ReadFrom(stream)
	requireNoError(t, err)
	return data.Bytes()
}

func TestSBOM_ListsAllPrograms(t *testing.T) {
	m := buildImage(t, writeInputs(t, parts{}))
	manifest, err := m.sbom.Manifest()
	requireNoError(t, err)
	if manifest.Subject == nil || manifest.Subject.Digest != m.digest || manifest.ArtifactType != "application/spdx+json" {
		t.Errorf("it refers to %+v as %s", manifest.Subject, manifest.ArtifactType)
	}
	document, err := json.Read(bytes.NewReader(readSingleFile(t, m.sbom)))
	requireNoError(t, err)
	requireNoError(t, spdxlib.ValidateDocument(document))
	names := map[string]string{}
	for _, p := range document.Packages {
		names[p.PackageName] = p.PackageVersion
	}
	for name, version := range map[string]string{
		imageName: testVersion, "wmco linux/amd64": testVersion, "wmco linux/arm64": testVersion, "wicd.exe": testVersion,
		"kubelet.exe": "v1.36.3", "hybrid-overlay-node.exe": "v4.20.1",
	} {
		if names[name] != version {
			t.Errorf("%s has the version %q, want %q", name, names[name], version)
		}
	}
	if names["stdlib"] == "" {
		t.Errorf("Go's standard library is not named: %v", names)
	}
}

func TestPush_FailureNamesLocalImage(t *testing.T) {
	o := writeInputs(t, parts{})
	o.image = unusedAddress(t) + "/team/wmco:dev"
	err := run(t.Context(), o, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), o.output) {
		t.Errorf("got error %v", err)
	}
	read(t, o.output)
}
