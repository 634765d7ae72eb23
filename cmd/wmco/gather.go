package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/gather"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// gatherName is the name of the subcommand. The image also contains the program under this name, because oc adm
// must-gather runs /usr/bin/gather.
const gatherName = "gather"

// gatheredDirectory is the directory that oc adm must-gather copies.
const gatheredDirectory = "/must-gather"

// newGatherCommand returns kubectl windows gather, which writes to the directory that oc adm must-gather copies.
func newGatherCommand() *cobra.Command {
	a := cmdutil.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, clock.RealClock{})
	command := gather.NewInPod(a, podexec.New(a), gatheredDirectory)
	a.AddFlags(command)
	return command
}

// commandArguments returns the arguments of the command: if the program is called gather, the subcommand is the first
// argument.
func commandArguments(process []string) []string {
	if filepath.Base(process[0]) == gatherName {
		return append([]string{gatherName}, process[1:]...)
	}
	return process[1:]
}
