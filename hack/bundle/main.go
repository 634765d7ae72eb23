// Command bundle writes the operator's package for the Operator Lifecycle Manager: the bundle of the current
// release, and the catalog entry with the releases that can be upgraded to it. The objects come from deploy/, the
// versions from internal/policy/support, and the texts from deploy/olm/base.yaml. Run it from the root of the
// repository:
//
//	go run ./hack/bundle -version 12.0.0
//	go run ./hack/bundle -version 12.0.0 -image example.com/wmco@sha256:... -bundle-image example.com/wmco-bundle:v12.0.0 -out build/olm
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// options contains the flags of the command.
type options struct {
	root, out                   string
	version, image, bundleImage string
	flavor, pauseImage          string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "`directory` of the repository")
	flag.StringVar(&o.out, "out", "", "`directory` to write to (default: deploy/olm of the repository)")
	flag.StringVar(&o.version, "version", "", "the operator's `version`; the last one of deploy/olm/releases.yaml")
	flag.StringVar(&o.image, "image", "",
		"the operator's `image` (default: the name that deploy/ has, which is a placeholder)")
	flag.StringVar(&o.bundleImage, "bundle-image", "", "the bundle's `image` (default: a placeholder)")
	flag.StringVar(&o.flavor, "flavor", "redhat", "the `flavor`: redhat or community")
	flag.StringVar(&o.pauseImage, "pause-image", "",
		"the `image` by digest that nodes pull for each pod (default: the name that deploy/ has)")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// run writes bundle and catalog.
func run(o options, out io.Writer) error {
	if o.out == "" {
		o.out = filepath.Join(o.root, "deploy", "olm")
	}
	lines := support.ReleaseLines()
	s, err := readSources(o.root, lines[len(lines)-1])
	if err != nil {
		return err
	}
	if s.flavor, err = parseFlavor(o.flavor); err != nil {
		return err
	}
	files, err := generateFiles(s, o)
	if err != nil {
		return err
	}
	for _, stale := range []string{"bundle", "catalog"} {
		if err := os.RemoveAll(filepath.Join(o.out, stale)); err != nil {
			return err
		}
	}
	for name, data := range files {
		path := filepath.Join(o.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	report := fmt.Sprintf("%s: %d files of %s\n", filepath.ToSlash(o.out), len(files), s.flavor.releaseName(s.releases.headRelease().Version))
	if o.image != "" && o.bundleImage == "" {
		report += "The catalog names no real image of the bundle: set BUNDLE_IMAGE before you publish it.\n"
	}
	if o.bundleImage != "" && o.image == "" {
		report += "The bundle names no real image of the operator: set IMAGE before you publish it.\n"
	}
	_, err = io.WriteString(out, report)
	return err
}
