// Package cliutil contains the common parts of the programs in hack: flags, the end by Ctrl-C, an error in one
// sentence, and the exit status.
package cliutil

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
	// Parse parses the flags with ParseFlags.
	Parse func(arguments []string) (Options, error)
	Run   func(ctx context.Context, options Options, log io.Writer) error
}

// Main runs the program until the end or an interrupt by Ctrl-C, and exits.
func (p Program[Options]) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := p.run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the program and returns the exit status.
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

// ParseFlags parses flags, and prints them for -help. For a mistake, only the error is returned, without printing
// all flags.
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

// OneLine returns the message of an error, possibly of several joined errors, as one sentence.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
