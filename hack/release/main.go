// Command release assembles the files of a published release: the image, the bundle, the catalog entry, the
// payload, the plugin of kubectl, the SBOM, checksums, and provenance. `make release` builds the parts before.
// docs/releasing.md describes the procedure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/windows-machine-config/wmco/hack/cliutil"
)

// options contains the flags.
type options struct {
	version, changelog     string
	image, payload, bundle string // build results
	plugin, license        string
	output                 string
	commit, name           string
	check, reference       bool
}

func parseFlags(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.version, "version", "", "`version` of the release")
	flags.StringVar(&o.changelog, "changelog", "CHANGELOG.md", "`file` that says what is new in it")
	flags.StringVar(&o.image, "image", "build/image", "`folder` with the operator's image, and its SBOM beside it")
	flags.StringVar(&o.payload, "payload", "build/payload", "`folder` of the payload")
	flags.StringVar(&o.bundle, "bundle", "build/olm", "`folder` of bundle and catalog")
	flags.StringVar(&o.plugin, "plugin", "build/plugin", "`folder` with the plugin of kubectl for each platform")
	flags.StringVar(&o.license, "license", "LICENSE", "`file` with the license")
	flags.StringVar(&o.output, "output", "build/release", "`folder` for a folder with the release")
	flags.StringVar(&o.commit, "commit", "", "`commit` that all was built from")
	flags.StringVar(&o.name, "name", "", "`name` with tag that the image was pushed to")
	flags.BoolVar(&o.check, "check", false, "only look whether a release of this version can be made")
	flags.BoolVar(&o.reference, "reference", false, "only print the image's name with its digest")
	return o, cliutil.ParseFlags(flags, arguments)
}

func main() {
	cliutil.Program[options]{Name: "release", Parse: parseFlags, Run: run}.Main()
}

func run(_ context.Context, o options, log io.Writer) error {
	if o.reference {
		reference, err := imageReference(o.image, o.name)
		fmt.Fprintln(log, reference)
		return err
	}
	if err := checkVersion(o.version, o.changelog); err != nil {
		return err
	}
	if _, err := name.NewTag(o.name, name.StrictValidation); err != nil {
		return fmt.Errorf("IMAGE=%s is no name with a tag that the release's image is pushed to: %w", o.name, err)
	}
	if o.check {
		return nil
	}
	return write(o, log)
}

// write writes the release into a new directory, which is renamed to its final name when complete.
func write(o options, log io.Writer) error {
	target := filepath.Join(o.output, o.version)
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("%s is there already: a release is made once; remove it to make it again", target)
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.output, ".incomplete-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := o.assembleFiles(dir); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Rename(dir, target)); err != nil {
		return err
	}
	fmt.Fprintf(log, "%s has the release; sign %s and %s, see docs/releasing.md\n", target, sumsFile, provenanceFile)
	return nil
}

// assembleFiles writes all files into a directory.
func (o options) assembleFiles(dir string) error {
	for name, source := range map[string]string{
		"image.oci.tar": o.image, "payload.tar": o.payload, "bundle.tar": filepath.Join(o.bundle, "bundle"),
	} {
		if err := packDirectory(source, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name, source := range map[string]string{
		"sbom.spdx.json": filepath.Clean(o.image) + ".spdx.json",
		"catalog.yaml":   filepath.Join(o.bundle, "catalog", "catalog.yaml"),
	} {
		data, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("%w: `make release` builds it", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	if err := o.writePlugins(dir); err != nil {
		return err
	}
	sums, err := writeSums(dir)
	if err != nil {
		return err
	}
	digest, err := imageDigest(o.image)
	if err != nil {
		return err
	}
	return writeProvenance(dir, o, digest, sums)
}
