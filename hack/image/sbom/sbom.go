// Package sbom describes an image in SPDX: the programs, and the Go modules in each program according to the build
// information. It reads no files. The same image gives the same document.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/mod/module"
)

// Image is the image to describe.
type Image struct {
	Name, Version, SHA256 string
	Vendor, License       string
	// Base is the base image, or "". The content of the base is not described.
	Base     string
	Created  time.Time
	Programs []Program
	// Modules lists the Go modules of data files in the image.
	Modules []*debug.Module
}

// Program is an executable in the image.
type Program struct {
	Name, Version, SHA256 string
	File                  string // path in the image, if the program is a separate file
	Source                string // origin of a program without build information
	Build                 *debug.BuildInfo
}

const noAssertion = "NOASSERTION"

// Document returns the SPDX document of an image, in JSON.
func Document(image Image) ([]byte, error) {
	d := newDocument(image)
	for _, p := range image.Programs {
		d.addProgram(p)
	}
	for _, m := range image.Modules {
		d.addRelationship(d.image, common.TypeRelationshipContains, d.addModule(m))
	}
	var data bytes.Buffer
	if err := json.Write(d.document, &data, json.Indent("  ")); err != nil {
		return nil, fmt.Errorf("write the SPDX document: %w", err)
	}
	return data.Bytes(), nil
}

// document is a document under construction.
type document struct {
	document *v2_3.Document
	image    common.ElementID
	vendor   *common.Supplier
	license  string
	packages map[common.ElementID]bool
}

func newDocument(image Image) *document {
	d := &document{
		document: &v2_3.Document{
			SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
			DocumentName:      image.Name + " " + image.Version,
			DocumentNamespace: "https://github.com/windows-machine-config/wmco/spdx/" + image.SHA256,
			CreationInfo: &v2_3.CreationInfo{
				Created: image.Created.UTC().Format(time.RFC3339),
				Creators: []common.Creator{{CreatorType: "Tool", Creator: "wmco-hack-image"},
					{CreatorType: "Organization", Creator: image.Vendor}},
			},
		},
		vendor: &common.Supplier{SupplierType: "Organization", Supplier: image.Vendor}, license: image.License,
		packages: map[common.ElementID]bool{},
	}
	p := d.newPackage("Image", image.Name, image.Version, "CONTAINER")
	p.PackageChecksums, p.PackageSupplier, p.PackageLicenseDeclared = newChecksums(image.SHA256), d.vendor, d.license
	if image.Base != "" {
		p.PackageComment = "It is built on another image, whose contents are not described here."
	}
	d.image = d.addPackage(p)
	d.addRelationship("DOCUMENT", common.TypeRelationshipDescribe, d.image)
	return d
}

// addProgram adds a program with its modules.
func (d *document) addProgram(from Program) {
	p := d.newPackage("Program", from.Name, from.Version, "APPLICATION")
	p.PackageChecksums, p.PackageFileName = newChecksums(from.SHA256), from.File
	p.PackageSourceInfo = from.Source
	if from.Build != nil {
		p.PackageSourceInfo = fmt.Sprintf("built by %s from the Go package %s", from.Build.GoVersion, from.Build.Path)
	}
	id := d.addPackage(p)
	d.addRelationship(d.image, common.TypeRelationshipContains, id)
	if from.Build == nil {
		return
	}
	d.addRelationship(id, common.TypeRelationshipDependsOn, d.standardLibrary(from.Build.GoVersion))
	for _, m := range programModules(from.Build) {
		d.addRelationship(id, common.TypeRelationshipDependsOn, d.addModule(m))
	}
}

// programModules returns all modules of a program except the main module of this repository.
func programModules(build *debug.BuildInfo) []*debug.Module {
	all := build.Deps
	if build.Main.Sum != "" {
		all = append([]*debug.Module{&build.Main}, all...)
	}
	return all
}

func (d *document) addModule(m *debug.Module) common.ElementID {
	if m.Replace != nil {
		m = m.Replace
	}
	p := d.newPackage("Module", m.Path, m.Version, "LIBRARY")
	p.PackageExternalReferences = newLocators("pkg:golang/" + m.Path + "@" + m.Version)
	if m.Sum != "" {
		p.PackageSourceInfo = "the sum in go.sum is " + m.Sum
	}
	if escaped, err := module.EscapePath(m.Path); err == nil {
		p.PackageDownloadLocation = fmt.Sprintf("https://proxy.golang.org/%s/@v/%s.zip", escaped, m.Version)
	}
	return d.addPackage(p)
}

func (d *document) standardLibrary(version string) common.ElementID {
	version, _, _ = strings.Cut(version, " ") // experiments follow the version
	p := d.newPackage("Module", "stdlib", version, "LIBRARY")
	p.PackageExternalReferences = newLocators("pkg:golang/stdlib@" + strings.TrimPrefix(version, "go"))
	p.PackageDownloadLocation, p.PackageLicenseDeclared = "https://go.dev/dl/"+version+".src.tar.gz", "BSD-3-Clause"
	return d.addPackage(p)
}

// newPackage returns a package without further information. The identifier consists of the name and a digest,
// because names may contain characters that identifiers must not contain.
func (d *document) newPackage(kind, name, version, purpose string) *v2_3.Package {
	sum := sha256.Sum256([]byte(name + "@" + version))
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, name)
	return &v2_3.Package{
		PackageName: name, PackageVersion: version, PrimaryPackagePurpose: purpose,
		PackageSPDXIdentifier:   common.ElementID(kind + "-" + readable + "-" + hex.EncodeToString(sum[:6])),
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion,
		PackageCopyrightText: noAssertion, IsFilesAnalyzedTagPresent: true,
	}
}

// addPackage adds a package once.
func (d *document) addPackage(p *v2_3.Package) common.ElementID {
	id := p.PackageSPDXIdentifier
	if !d.packages[id] {
		d.packages[id] = true
		d.document.Packages = append(d.document.Packages, p)
	}
	return id
}

func (d *document) addRelationship(from common.ElementID, how string, to common.ElementID) {
	d.document.Relationships = append(d.document.Relationships, &v2_3.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: how,
	})
}

func newChecksums(sha256 string) []common.Checksum {
	return []common.Checksum{{Algorithm: common.SHA256, Value: sha256}}
}

func newLocators(purl string) []*v2_3.PackageExternalReference {
	return []*v2_3.PackageExternalReference{{Category: common.CategoryPackageManager,
		RefType: common.TypePackageManagerPURL, Locator: purl}}
}
