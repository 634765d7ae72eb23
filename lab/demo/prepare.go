package main

import (
	"github.com/spf13/cobra"

	"github.com/windows-machine-config/wmco/lab/wine"
)

// newPrepareWineCommand returns a command that prepares Wine hosts. The tests and the demo run the same
// preparation if needed. If the preparation runs during a compilation, it costs no extra time: most of it is
// the download from the Debian archive.
func newPrepareWineCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "prepare-wine",
		Short: "Make what Wine hosts are made of, unless it is there: a chroot with Wine, a Windows installation and programs (needs root)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := wine.Prepare(cmd.Context(), dir)
			return err
		},
	}
	command.Flags().StringVar(&dir, "dir", "", "where it lies (default: build/wine of the repository)")
	return command
}
