package main

import (
	"fmt"
	"io"
	"time"
)

// output is the output of the demo.
type output struct {
	writer io.Writer
	began  time.Time
}

func newOutput(writer io.Writer) *output { return &output{writer: writer, began: time.Now()} }

// step prints a line with the time since the start.
func (o *output) step(format string, args ...any) {
	o.println(fmt.Sprintf("[%5.1fs] ", time.Since(o.began).Seconds()) + fmt.Sprintf(format, args...))
}

// println ignores errors: the demo continues without a reader.
func (o *output) println(text string) { _, _ = io.WriteString(o.writer, text+"\n") }
