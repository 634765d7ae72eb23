package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const (
	version = "12.1.0"
	commit  = "0123456789abcdef0123456789abcdef01234567"
)

// writeBuildResults writes small replacements for the build results of `make release`.
func writeBuildResults(t *testing.T) options {
	t.Helper()
	dir := t.TempDir()
	o := options{version: version, commit: commit, name: "registry.example.com/wmco:v12.1.0", changelog: filepath.Join(dir, "CHANGELOG.md"),
		image: filepath.Join(dir, "image"), payload: filepath.Join(dir, "payload"), bundle: filepath.Join(dir, "olm"),
		plugin: filepath.Join(dir, "plugin"), license: filepath.Join(dir, "LICENSE"), output: filepath.Join(dir, "release")}
	path, err := layout.Write(o.image, empty.Index)
	requireNoError(t, err)
	requireNoError(t, path.AppendIndex(mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: empty.Image})))
	for name, text := range map[string]string{
		o.changelog:            "# Changelog\n\n## 12.1.0 (2026-12-01)\n\n### Added\n\n- All.\n\n## 12.0.0\n\n- First.\n",
		o.image + ".spdx.json": "{}",
		filepath.Join(o.payload, "manifest.json"):          "{}",
		filepath.Join(o.payload, "store", "a.zst"):         "a",
		filepath.Join(o.bundle, "bundle", "csv.yaml"):      "kind: ClusterServiceVersion",
		filepath.Join(o.bundle, "catalog", "catalog.yaml"): "schema: olm.package",
	} {
		requireNoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		requireNoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	requireNoError(t, os.WriteFile(o.license, []byte("Apache"), 0o600))
	for _, p := range platforms {
		program := filepath.Join(o.plugin, p.os+"-"+p.arch, p.programName())
		requireNoError(t, os.MkdirAll(filepath.Dir(program), 0o755))
		requireNoError(t, os.WriteFile(program, []byte("for "+p.os+" on "+p.arch), 0o755))
	}
	return o
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// createRelease creates the release, and returns its files.
func createRelease(t *testing.T, o options) map[string]string {
	t.Helper()
	requireNoError(t, run(t.Context(), o, io.Discard))
	dir := filepath.Join(o.output, o.version)
	entries, err := os.ReadDir(dir)
	requireNoError(t, err)
	files := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		requireNoError(t, err)
		files[entry.Name()] = string(data)
	}
	return files
}

func TestRelease(t *testing.T) {
	o := writeBuildResults(t)
	files := createRelease(t, o)
	t.Run("has all that is published", func(t *testing.T) {
		for _, name := range []string{"image.oci.tar", "payload.tar", "bundle.tar", "catalog.yaml", "sbom.spdx.json",
			"SHA256SUMS", "provenance.intoto.json"} {
			if files[name] == "" {
				t.Errorf("there is no %s among %d files", name, len(files))
			}
		}
		var names []string
		for reader := tar.NewReader(strings.NewReader(files["payload.tar"])); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			requireNoError(t, err)
			names = append(names, header.Name)
		}
		if got := strings.Join(names, " "); got != "manifest.json store/a.zst" {
			t.Errorf("the payload's archive has %s", got)
		}
	})
	t.Run("has checksums that sha256sum accepts", func(t *testing.T) {
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
		check.Dir = filepath.Join(o.output, version)
		if output, err := check.CombinedOutput(); err != nil || bytes.Count(output, []byte(": OK")) != 5+1+len(platforms) {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("says of each file and of the image where it comes from", func(t *testing.T) {
		var s statement
		requireNoError(t, json.Unmarshal([]byte(files["provenance.intoto.json"]), &s))
		if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" || len(s.Subject) != 6+1+len(platforms) {
			t.Errorf("it is a %s of %s with %d subjects", s.Type, s.PredicateType, len(s.Subject))
		}
		digest, err := imageDigest(o.image)
		requireNoError(t, err)
		if s.Subject[0].Digest["sha256"] != digest || s.Subject[1].Name != "bundle.tar" {
			t.Errorf("subjects %+v", s.Subject)
		}
		source := s.Predicate.BuildDefinition.ResolvedDependencies[0]
		if source.Digest["gitCommit"] != commit || !strings.HasSuffix(source.URI, "@refs/tags/v12.1.0") {
			t.Errorf("it comes from %+v", source)
		}
	})
	t.Run("is the same when it is made again elsewhere", func(t *testing.T) {
		again := writeBuildResults(t)
		requireNoError(t, os.Chtimes(filepath.Join(again.payload, "manifest.json"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
		for name, text := range createRelease(t, again) {
			if text != files[name] {
				t.Errorf("%s differs", name)
			}
		}
	})
	t.Run("is not made a second time over the first", func(t *testing.T) {
		if err := run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "a release is made once") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("names its image by the digest, for the bundle", func(t *testing.T) {
		o := o
		o.reference = true
		var output bytes.Buffer
		requireNoError(t, run(t.Context(), o, &output))
		digest, err := imageDigest(o.image)
		requireNoError(t, err)
		if got := output.String(); got != "registry.example.com/wmco@sha256:"+digest+"\n" {
			t.Errorf("it is %s", got)
		}
	})
}

func TestRelease_InvalidInputRejectedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, o *options)
		want   string
	}{
		"of no version":                  {func(_ *testing.T, o *options) { o.version = "next" }, "VERSION=next is no version"},
		"without an entry":               {func(_ *testing.T, o *options) { o.version = "12.2.0" }, "no entry for 12.2.0"},
		"whose version begins another's": {func(_ *testing.T, o *options) { o.version = "12.1.0-rc.1" }, "no entry for 12.1.0-rc.1"},
		"with an entry that says nothing": {func(t *testing.T, o *options) {
			requireNoError(t, os.WriteFile(o.changelog, []byte("## 12.1.0\n\n## 12.0.0\n\n- First.\n"), 0o600))
		}, "says nothing"},
		"without a place for its image": {func(_ *testing.T, o *options) { o.name = "" }, "IMAGE= is no name with a tag"},
		"without a payload":             {func(_ *testing.T, o *options) { o.payload = "none/payload" }, "none/payload"},
		"without an image":              {func(t *testing.T, o *options) { requireNoError(t, os.RemoveAll(o.image)) }, "image"},
		"without the plugin of a platform": {func(t *testing.T, o *options) {
			requireNoError(t, os.RemoveAll(filepath.Join(o.plugin, "darwin-arm64")))
		}, "make release"},
		"without an SBOM": {func(t *testing.T, o *options) { requireNoError(t, os.Remove(o.image+".spdx.json")) }, "make release"},
	} {
		t.Run(name, func(t *testing.T) {
			o := writeBuildResults(t)
			test.change(t, &o)
			err := run(t.Context(), o, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(o.output, "*")); len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}
