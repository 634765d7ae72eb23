// Command image writes the operator's image as an OCI layout: for each platform the operator's program, and the
// payload with everything that runs on Windows nodes. Neither a daemon nor root is required. docs/install.md
// describes the use by `make image`.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/windows-machine-config/wmco/hack/cliutil"
)

// options contains the flags.
type options struct {
	operators    operatorFlag
	payload      string
	agent        string
	version      string
	base         string
	output       string
	image        string
	allowMissing string
	epoch        string // SOURCE_DATE_EPOCH
	// budgets are not checked if nil.
	budgets *budgets
	// create opens a new file of the layout.
	create func(path string) (io.WriteCloser, error)
}

func parseFlags(arguments []string) (options, error) {
	o := options{epoch: os.Getenv("SOURCE_DATE_EPOCH"), create: createFile}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.Var(&o.operators, "operator",
		"`platform=file` of an operator's program, say linux/amd64=build/wmco; once for each platform")
	flags.StringVar(&o.payload, "payload", "build/payload", "`folder` of the payload")
	flags.StringVar(&o.agent, "agent", "build/wicd.exe", "`file` that is the agent; the payload must have the same one")
	flags.StringVar(&o.version, "version", "", "`version` of the operator; the payload must have the same one")
	flags.StringVar(&o.base, "base", "",
		"`image` to build on: a folder with an OCI layout, or a reference; none: only what the operator needs")
	flags.StringVar(&o.output, "output", "build/image", "`folder` for the OCI layout; the SBOM is written beside it")
	flags.StringVar(&o.image, "image", "", "`name` with tag to push the image to, say registry.example.com/wmco:dev")
	flags.StringVar(&o.allowMissing, "allow-missing", "",
		"`names` of components that the payload need not have, with spaces between")
	flags.BoolFunc("within-budgets", "fail if operator or image are larger than releases may be", func(string) error {
		o.budgets = releaseBudgets()
		return nil
	})
	err := cliutil.ParseFlags(flags, arguments)
	return o, err
}

func createFile(path string) (io.WriteCloser, error) { return os.Create(path) }

func main() {
	cliutil.Program[options]{Name: "image", Parse: parseFlags, Run: run}.Main()
}

// run reads and checks all inputs before writing anything, and writes all files before pushing anything.
func run(ctx context.Context, o options, log io.Writer) error {
	created, err := creationTime(o.epoch)
	if err != nil {
		return err
	}
	tag, err := parseTag(o.image)
	if err != nil {
		return err
	}
	programs, err := readOperators(o.operators, o.version)
	if err = errors.Join(err, o.budgets.checkOperators(programs)); err != nil {
		return err
	}
	files, err := readPayload(o)
	if err != nil {
		return err
	}
	base, err := openBase(ctx, o.base)
	if err != nil {
		return err
	}
	staging, err := newStaging(o.output)
	if err != nil {
		return err
	}
	defer staging.deleteFiles()
	w := writer{layout: staging.layoutPath(), create: o.create, created: created, version: o.version, base: base}
	result, err := w.write(programs, files, cmp.Or(tag.TagStr(), o.version))
	if err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	if err := o.budgets.checkImages(result.images, files); err != nil {
		return err
	}
	if err := staging.moveToOutput(result.sbom); err != nil {
		return err
	}
	fmt.Fprint(log, result.formatSummary(o.output))
	if o.image == "" {
		return nil
	}
	if err := pushImage(ctx, tag, o.output, result); err != nil {
		return fmt.Errorf("push %s: %w; the image stays in %s", o.image, err, o.output)
	}
	// The digest has no tag beside it: skopeo accepts no name with both.
	fmt.Fprintf(log, "pushed %s\n%s\n", tag, tag.Context().Digest(result.digest.String()))
	return nil
}
