package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// krewPlugin contains the fields of krew's manifest that determine the installed files.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Homepage         string `json:"homepage"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
			Files  []struct {
				From string `json:"from"`
				To   string `json:"to"`
			} `json:"files"`
		} `json:"platforms"`
	} `json:"spec"`
}

func TestKrewManifest_InstallsPluginOnEachPlatform(t *testing.T) {
	files := createRelease(t, writeBuildResults(t))
	var manifest krewPlugin
	requireNoError(t, yaml.UnmarshalStrict([]byte(files[krewFile]), &manifest))
	if manifest.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || manifest.Kind != "Plugin" ||
		manifest.Metadata.Name != "windows" || manifest.Spec.Version != "v12.1.0" {
		t.Errorf("it is %s %s %s in version %s", manifest.APIVersion, manifest.Kind, manifest.Metadata.Name, manifest.Spec.Version)
	}
	served := map[string]bool{}
	for _, p := range manifest.Spec.Platforms {
		name := p.Selector.MatchLabels["os"] + " on " + p.Selector.MatchLabels["arch"]
		served[name] = true
		if !strings.HasPrefix(p.URI, repository+"/releases/download/v12.1.0/") {
			t.Errorf("%s: the archive comes from %s", name, p.URI)
		}
		archive := files[path.Base(p.URI)]
		if digest := sha256.Sum256([]byte(archive)); hex.EncodeToString(digest[:]) != p.SHA256 {
			t.Errorf("%s: the digest is not that of %s", name, path.Base(p.URI))
		}
		found := map[string]string{}
		compressed, err := gzip.NewReader(strings.NewReader(archive))
		requireNoError(t, err)
		for reader := tar.NewReader(compressed); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			requireNoError(t, err)
			content, err := io.ReadAll(reader)
			requireNoError(t, err)
			found[header.Name] = string(content)
			if header.Name == p.Bin && header.Mode != 0o755 {
				t.Errorf("%s: the program cannot be run: %o", name, header.Mode)
			}
		}
		if found[p.Bin] != "for "+name {
			t.Errorf("%s: the archive has %v", name, found)
		}
		for _, file := range p.Files {
			if found[file.From] == "" || file.To != "." {
				t.Errorf("%s: krew finds no %s in the archive", name, file.From)
			}
		}
	}
	if len(served) != 6 || !served["darwin on arm64"] || !served["windows on amd64"] {
		t.Errorf("it is for %v", served)
	}
}
