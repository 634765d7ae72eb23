package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/windows-machine-config/wmco/hack/payload/release"
	"github.com/windows-machine-config/wmco/hack/payload/release/releasetest"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// cluster is a registry with an OpenShift release.
type cluster struct{ host string }

func newCluster(t *testing.T) cluster {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return cluster{strings.TrimPrefix(server.URL, "http://")}
}

func (c cluster) pushImage(t *testing.T, repository string, image v1.Image) string {
	t.Helper()
	tag, err := name.NewTag(c.host + "/" + repository + ":4.20.1")
	if err == nil {
		err = remote.Write(tag, image)
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return tag.Context().Digest(digest.String()).String()
}

// publishRelease publishes a release with a component that has a file, and returns the names of component and release.
func (c cluster) publishRelease(t *testing.T, file string, content []byte) (component, release string) {
	t.Helper()
	component = c.pushImage(t, "art-dev", releasetest.Image(t, "amd64", "",
		[]releasetest.Entry{releasetest.File("opt/tools/"+file, string(content))}))
	return component, c.pushImage(t, "release", releasetest.Release(t, "amd64", map[string]string{"the-tools": component}))
}

func readProgram(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRelease_ProvidesExternalComponents(t *testing.T) {
	f, o := testOptions(t)
	o.allowMissing, o.components = "", "tool"
	component, release := newCluster(t).publishRelease(t, "wicd.exe", readProgram(t, o.agent))
	o.release = release
	if err := run(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	t.Run("the payload has them, with the digest that they came by", func(t *testing.T) {
		p, err := payload.Load(o.output)
		if err != nil {
			t.Fatal(err)
		}
		c, ok := p.Manifest().Component("brought")
		sum, err := fileDigest(o.agent)
		if err != nil {
			t.Fatal(err)
		}
		_, digest, _ := strings.Cut(release, "@")
		if !ok || c.Version != "v4.20.1" || c.Source != component+" of release 4.20.1 ("+digest+")" ||
			c.Files[0].SHA256 != sum || p.Missing("brought", "") != nil {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("the report says how they came", func(t *testing.T) {
		var report Report
		if err := json.Unmarshal(readProgram(t, filepath.Join(o.output, "report.json")), &report); err != nil {
			t.Fatal(err)
		}
		if last := report.OtherFiles[len(report.OtherFiles)-1]; !strings.Contains(last.How, component) {
			t.Errorf("got %+v", report.OtherFiles)
		}
		if text := string(readProgram(t, filepath.Join(o.output, "report.txt"))); !strings.Contains(text, "taken from the release's image "+component) {
			t.Errorf("got %s", text)
		}
	})
	t.Run("nothing unchecked is left", func(t *testing.T) {
		left, err := filepath.Glob(filepath.Join(o.bin, "brought", ".unchecked-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("there is %v, error %v", left, err)
		}
	})
	t.Run("a list may not bring them too", func(t *testing.T) {
		o := o
		sum, err := fileDigest(o.agent)
		if err != nil {
			t.Fatal(err)
		}
		o.external = filepath.Join(f.dir, "agent", "external.yaml")
		writeFile(t, o.external, "- component: brought\n  version: v4\n  source: here\n  files:\n  - {file: wicd.exe, sha256: "+sum+"}\n")
		if err := run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "give one of them") {
			t.Errorf("got error %v", err)
		}
	})
}

func TestRelease_InvalidProgramsRejected(t *testing.T) {
	f, o := testOptions(t)
	o.allowMissing = ""
	c := newCluster(t)
	for name, test := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"a text":                    {"wicd.exe", []byte("no program"), "not a Windows program"},
		"a program for Linux":       {"wicd.exe", readProgram(t, os.Args[0]), "not a Windows program"},
		"another program":           {"wicd.exe", readProgram(t, f.buildProgram(t, "another")), "another for windows/amd64 instead of from wicd"},
		"a file with another name":  {"wicd-v2.exe", readProgram(t, o.agent), "no file /opt/tools/wicd.exe"},
		"a program without origin":  {"wicd.exe", withoutBuildInfo(readProgram(t, o.agent)), "not a Go program"},
		"half of the right program": {"wicd.exe", readProgram(t, o.agent)[:4096], "wicd.exe"},
	} {
		t.Run(name+" is refused before anything is built, and not left behind", func(t *testing.T) {
			o := o
			o.bin = filepath.Join(t.TempDir(), "bin")
			_, o.release = c.publishRelease(t, test.file, test.content)
			var log bytes.Buffer
			err := run(t.Context(), o, &log)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "EXTERNAL=") {
				t.Errorf("got error %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(o.bin, "*", "*")); err != nil || len(left) > 0 || strings.Contains(log.String(), "tool.exe") {
				t.Errorf("there is %v (error %v), and the log says %s", left, err, log.String())
			}
		})
	}
	t.Run("mirrors without a release are a mistake", func(t *testing.T) {
		o := o
		o.mirrors = "idms.yaml"
		if err := run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "give RELEASE= too") {
			t.Errorf("got error %v", err)
		}
	})
}

// withoutBuildInfo removes the build information from a Go program.
func withoutBuildInfo(program []byte) []byte {
	return bytes.ReplaceAll(program, []byte("\xff Go buildinf:"), []byte("\xff No buildinf:"))
}

func TestAssignMinors(t *testing.T) {
	old, newer := &release.Release{Version: "4.21.3"}, &release.Release{Version: "5.0.1"}
	list := assignMinors(support.CurrentLine(), map[string]*release.Release{"1.34": old, "1.36": newer})
	if len(list) != 2 || list[0].Release != old || !slices.Equal(list[0].minors, []string{"1.33", "1.34"}) ||
		list[1].Release != newer || !slices.Equal(list[1].minors, []string{"1.35", "1.36", "1.37"}) {
		t.Errorf("got %+v", list)
	}
}
