package main

import (
	"fmt"
	"io"
	"time"
)

// output is the output of the demo.
type output struct {
	writer io.Writer
	start  time.Time
}

func newOutput(writer io.Writer) *output { return &output{writer: writer, start: time.Now()} }

// printStep prints a line with the time since the start.
func (o *output) printStep(format string, args ...any) {
	o.printLine(fmt.Sprintf("[%5.1fs] ", time.Since(o.start).Seconds()) + fmt.Sprintf(format, args...))
}

// printLine ignores errors: the demo continues without a reader.
func (o *output) printLine(text string) { _, _ = io.WriteString(o.writer, text+"\n") }
