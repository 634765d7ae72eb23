// Package command has what programs of hack have in common from the command line to the exit status: flags, the end by
// Ctrl-C, and an error in one sentence. It knows nothing of what they do.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// Program is a program with the flags Options.
type Program[Options any] struct {
	Name string
	// Parse reads the flags, by ParseFlags.
	Parse func(arguments []string) (Options, error)
	Run   func(ctx context.Context, options Options, log io.Writer) error
}

// Main runs the program until it ends or somebody presses Ctrl-C, and exits.
func (p Program[Options]) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := p.run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run returns the exit status.
func (p Program[Options]) run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	options, err := p.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = p.Run(ctx, options, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", p.Name, OneLine(err))
		return 1
	}
	return 0
}

// ParseFlags reads flags, and shows them for -help. A mistake is the error alone, without the list of all flags.
func ParseFlags(flags *flag.FlagSet, arguments []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stderr)
		flags.PrintDefaults()
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected arguments, which are not flags: %q", flags.Args())
	}
	return err
}

// OneLine returns the message of an error, which may be several joined ones, as one sentence.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
