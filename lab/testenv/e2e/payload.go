package e2e

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/lab/payload"
)

// version is the version of the operator in the payloads of tests.
const version = "1.0.0-lab"

// Payload is a payload shared by tests. The first use generates it.
type Payload struct {
	agent   string
	options payload.Options
	once    sync.Once
	dir     string
	err     error
}

// NewPayload returns a payload with the agent at the given path; with "", the agent is a placeholder like the other
// programs.
func NewPayload(agent string, options payload.Options) *Payload {
	return &Payload{agent: agent, options: options}
}

// Directory returns the directory of the payload, and fails the test if the payload cannot be generated.
func (p *Payload) Directory(t testing.TB) string {
	t.Helper()
	p.once.Do(p.generatePayload)
	if p.err != nil {
		t.Fatalf("make the payload (is %s built?): %v", p.agent, p.err)
	}
	return p.dir
}

func (p *Payload) generatePayload() {
	if p.dir, p.err = os.MkdirTemp("", "wmco-test-payload-"); p.err == nil {
		_, p.err = payload.Generate(p.dir, p.agent, version, p.options)
	}
}

// Remove deletes the payload if a test has used it. It returns 1 and prints the error on failure, else 0.
func (p *Payload) Remove() int {
	if p.dir == "" {
		return 0
	}
	if err := os.RemoveAll(p.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
