package cmdutil

import (
	"io"

	"golang.org/x/term"

	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// descriptor is a file of the operating system.
type descriptor interface{ Fd() uintptr }

// terminal is an output of the plugin to a terminal. Much of the output comes from hosts.
type terminal struct {
	sanitize.Terminal
	descriptor
}

// Printable returns the output, with control characters replaced if the output is a terminal.
func Printable(out io.Writer) io.Writer {
	file, ok := out.(descriptor)
	if _, is := out.(*terminal); is || !ok || !term.IsTerminal(int(file.Fd())) {
		return out
	}
	return &terminal{sanitize.Terminal{Out: out}, file}
}

// clearScreen moves the cursor of a terminal to the first line, and deletes all lines.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

// ClearScreen clears the output terminal, and reports whether the output is a terminal.
func (a *Access) ClearScreen() (is bool, err error) {
	screen, is := a.Out.(*terminal)
	if !is {
		return false, nil
	}
	_, err = io.WriteString(screen.Out, clearScreen)
	return true, err
}
