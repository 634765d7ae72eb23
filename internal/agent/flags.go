package agent

import (
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// versionVerb prints the version and nothing else.
const versionVerb verb.Name = "version"

// input is a command line.
type input struct {
	verb    verb.Name
	spec    string // path
	payload string // path; empty when nothing was sent
}

const usage = "usage: wicd facts | plan --spec FILE [--payload FILE] | apply --spec FILE [--payload FILE] | verify | remove | service | version"

func parse(args []string) (input, error) {
	if len(args) == 0 {
		return input{}, fmt.Errorf("no verb given; %s", usage)
	}
	in := input{verb: verb.Name(args[0])}
	known := []verb.Name{verb.Facts, verb.Plan, verb.Apply, verb.Verify, verb.Remove, verb.Service, versionVerb}
	if !slices.Contains(known, in.verb) {
		return input{}, fmt.Errorf("there is no verb %q; %s", args[0], usage)
	}
	takesSpec := in.verb == verb.Plan || in.verb == verb.Apply
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if takesSpec {
		flags.StringVar(&in.spec, "spec", "", "the NodeSpec")
		flags.StringVar(&in.payload, "payload", "", "an archive with the files that the host lacks")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return input{}, fmt.Errorf("%s: %w; %s", in.verb, err, usage)
	}
	switch {
	case flags.NArg() > 0:
		return input{}, fmt.Errorf("%s: %q is not expected; %s", in.verb, flags.Arg(0), usage)
	case takesSpec && in.spec == "":
		return input{}, fmt.Errorf("%s: --spec is missing; %s", in.verb, usage)
	}
	return in, nil
}
