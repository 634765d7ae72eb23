package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// krewFile is the manifest for krew, the manager of kubectl's plugins.
const krewFile = "krew-windows.yaml"

// platforms lists the platforms of the kubectl plugin.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

type platform struct{ os, arch string }

// programName returns the name of the plugin's program.
func (p platform) programName() string {
	if p.os == "windows" {
		return "kubectl-windows.exe"
	}
	return "kubectl-windows"
}

// archiveName returns the name of the archive with the program.
func (p platform) archiveName() string { return "kubectl-windows-" + p.os + "-" + p.arch + ".tar.gz" }

// writePlugins packs the plugin for each platform, with the license, and writes the manifest for krew.
func (o options) writePlugins(dir string) error {
	var sums []sum
	for _, p := range platforms {
		archive := filepath.Join(dir, p.archiveName())
		files := map[string]string{p.programName(): filepath.Join(o.plugin, p.os+"-"+p.arch, p.programName()), "LICENSE": o.license}
		if err := writeArchive(archive, files, "LICENSE", p.programName()); err != nil {
			return fmt.Errorf("%w: `make release` builds it", err)
		}
		digest, err := digestOf(archive)
		if err != nil {
			return err
		}
		sums = append(sums, sum{p.archiveName(), digest})
	}
	manifest, err := yaml.Marshal(krewManifest(o.version, sums))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, krewFile), manifest, 0o644)
}

// writeArchive writes files into an archive, under these names and in this order.
func writeArchive(archive string, files map[string]string, names ...string) error {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(file)
	w := tar.NewWriter(compressed)
	for _, name := range names {
		if err = addFile(w, files[name], name); err != nil {
			break
		}
	}
	return errors.Join(err, w.Close(), compressed.Close(), file.Close())
}

// krewManifest returns the Plugin object for krew: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
func krewManifest(version string, sums []sum) map[string]any {
	var list []any
	for n, p := range platforms {
		list = append(list, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      fmt.Sprintf("%s/releases/download/v%s/%s", repository, version, sums[n].name),
			"sha256":   sums[n].sha256,
			"bin":      p.programName(),
			"files":    []any{map[string]any{"from": p.programName(), "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
		})
	}
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "windows"},
		"spec": map[string]any{
			"version":          "v" + strings.TrimPrefix(version, "v"),
			"homepage":         repository,
			"shortDescription": "Manage the Windows nodes of an OpenShift cluster",
			"description": "Shows how far each Windows host is that the Windows Machine Config Operator configures, and why;\n" +
				"collects what a support case needs; pauses, restarts and removes hosts; makes MachineSets.\n",
			"caveats":   "The operator must be installed in the cluster: docs/install.md of the repository.\n",
			"platforms": list,
		},
	}
}
