package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// output is where the demo is shown: a terminal, on which a view is redrawn in place, or a file, which gets lines.
type output struct {
	writer   io.Writer
	terminal int // its file descriptor, or -1
	began    time.Time
	drawn    int // lines of the view on the terminal
}

func newOutput(file *os.File) *output {
	o := &output{writer: file, terminal: -1, began: time.Now()}
	if fd := int(file.Fd()); term.IsTerminal(fd) && os.Getenv("TERM") != "dumb" {
		o.terminal = fd
	}
	return o
}

// interactive reports whether a view can be redrawn.
func (o *output) interactive() bool { return o.terminal >= 0 }

// screen returns the size of the terminal now.
func (o *output) screen() screen {
	width, height, err := term.GetSize(o.terminal)
	if err != nil || width <= 0 || height <= 0 {
		return screen{width: 80, height: 24}
	}
	return screen{width, height}
}

// draw puts the view in the place of the one before.
func (o *output) draw(lines []string) {
	var b strings.Builder
	if o.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", o.drawn)
	}
	b.WriteString("\r\x1b[J")
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	o.drawn = len(lines)
	o.print(b.String())
}

// settle leaves the view where it is: what follows goes below.
func (o *output) settle() { o.drawn = 0 }

// step says what is being done, with the time since the start.
func (o *output) step(format string, args ...any) {
	o.println(fmt.Sprintf("[%5.1fs] ", time.Since(o.began).Seconds()) + fmt.Sprintf(format, args...))
}

func (o *output) println(text string) { o.print(text + "\n") }

// print ignores errors: the demo goes on when nobody looks any more.
func (o *output) print(text string) { _, _ = io.WriteString(o.writer, text) }
