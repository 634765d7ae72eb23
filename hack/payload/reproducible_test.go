package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// Of the real payload the smallest component is built twice, the second time with an empty cache; `make payload-reproducible` does that with
// all.
func TestTheRealPayloadIsTheSameTwice(t *testing.T) {
	var log bytes.Buffer
	o := options{
		table: filepath.Join("..", "..", "payload", "components.yaml"), modules: filepath.Join("..", "..", "payload"),
		components: "kube-log-runner", reproducible: true, scratch: filepath.Join(t.TempDir(), "scratch"),
	}
	if err := run(t.Context(), o, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if !strings.Contains(log.String(), "kube-log-runner.exe is the same twice") {
		t.Errorf("it says %s", log.String())
	}
}
