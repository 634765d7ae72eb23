package sbom

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

// newSampleImage returns an image with two Go programs that share a module, and a program of unknown content.
func newSampleImage() Image {
	shared := &debug.Module{Path: "example.org/Shared/module", Version: "v1.2.3", Sum: "h1:shared="}
	return Image{
		Name: "operator", Version: "12.0.0", SHA256: strings.Repeat("1", 64), Vendor: "Somebody", License: "Apache-2.0",
		Created: time.Unix(1700000000, 0),
		Programs: []Program{
			{Name: "wmco", Version: "12.0.0", SHA256: strings.Repeat("2", 64), File: "/usr/bin/wmco",
				Build: &debug.BuildInfo{GoVersion: "go1.26.8 X:something", Path: "example.org/wmco/cmd/wmco",
					Main: debug.Module{Path: "example.org/wmco", Version: "(devel)"}, Deps: []*debug.Module{shared}}},
			{Name: "kubelet.exe", Version: "v1.36.3", SHA256: strings.Repeat("3", 64),
				Build: &debug.BuildInfo{GoVersion: "go1.26.8", Path: "k8s.io/kubernetes/cmd/kubelet",
					Main: debug.Module{Path: "example.org/kubelet", Version: "(devel)"},
					Deps: []*debug.Module{shared, {Path: "example.org/old", Version: "v1.0.0",
						Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0"}}}}},
			{Name: "brought.exe", Version: "v4", SHA256: strings.Repeat("4", 64),
				Source: "registry.example.org/brought@sha256:12"},
		},
	}
}

func parseDocument(t *testing.T, image Image) *v2_3.Document {
	t.Helper()
	data, err := Document(image)
	if err != nil {
		t.Fatal(err)
	}
	read, err := json.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(read); err != nil {
		t.Fatal(err)
	}
	return read
}

func findPackage(t *testing.T, d *v2_3.Document, name string) *v2_3.Package {
	t.Helper()
	i := slices.IndexFunc(d.Packages, func(p *v2_3.Package) bool { return p.PackageName == name })
	if i < 0 {
		t.Fatalf("there is no package %s", name)
	}
	return d.Packages[i]
}

// hasRelationship reports whether the document relates two packages.
func hasRelationship(d *v2_3.Document, from *v2_3.Package, how string, to *v2_3.Package) bool {
	return slices.ContainsFunc(d.Relationships, func(r *v2_3.Relationship) bool {
		return r.RefA.ElementRefID == from.PackageSPDXIdentifier && r.Relationship == how &&
			r.RefB.ElementRefID == to.PackageSPDXIdentifier
	})
}

func TestDocument(t *testing.T) {
	d := parseDocument(t, newSampleImage())
	image, shared := findPackage(t, d, "operator"), findPackage(t, d, "example.org/Shared/module")
	t.Run("every program is in the image, with its digest", func(t *testing.T) {
		for name, digit := range map[string]string{"wmco": "2", "kubelet.exe": "3", "brought.exe": "4"} {
			p := findPackage(t, d, name)
			if !hasRelationship(d, image, "CONTAINS", p) || p.PackageChecksums[0].Value != strings.Repeat(digit, 64) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	})
	t.Run("a module that two programs have is described once", func(t *testing.T) {
		count := 0
		for _, p := range d.Packages {
			if p.PackageName == shared.PackageName {
				count++
			}
		}
		if count != 1 || !hasRelationship(d, findPackage(t, d, "wmco"), "DEPENDS_ON", shared) ||
			!hasRelationship(d, findPackage(t, d, "kubelet.exe"), "DEPENDS_ON", shared) {
			t.Errorf("it is there %d times", count)
		}
	})
	t.Run("a module has the locator that vulnerability scanners read, and the way to its source", func(t *testing.T) {
		if got := shared.PackageExternalReferences[0].Locator; got != "pkg:golang/example.org/Shared/module@v1.2.3" {
			t.Errorf("the locator is %s", got)
		}
		if shared.PackageDownloadLocation != "https://proxy.golang.org/example.org/!shared/module/@v/v1.2.3.zip" ||
			!strings.Contains(shared.PackageSourceInfo, "h1:shared=") {
			t.Errorf("it comes from %s, %s", shared.PackageDownloadLocation, shared.PackageSourceInfo)
		}
	})
	t.Run("a module that replaces another one is named in its place", func(t *testing.T) {
		if findPackage(t, d, "example.org/new").PackageVersion != "v2.0.0" {
			t.Error("it has another version")
		}
	})
	t.Run("Go's standard library is named by its version alone", func(t *testing.T) {
		if got := findPackage(t, d, "stdlib").PackageVersion; got != "go1.26.8" {
			t.Errorf("the version is %s", got)
		}
	})
	t.Run("a program without build information names its source", func(t *testing.T) {
		if got := findPackage(t, d, "brought.exe").PackageSourceInfo; got != "registry.example.org/brought@sha256:12" {
			t.Errorf("the source is %q", got)
		}
	})
}

func TestDocument_SameImageGivesSameDocument(t *testing.T) {
	first, err := Document(newSampleImage())
	if err != nil {
		t.Fatal(err)
	}
	second, err := Document(newSampleImage())
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the documents differ, error %v", err)
	}
}
