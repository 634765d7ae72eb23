package rigtest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/lab/payload"
)

// version is the operator's in the payloads of tests.
const version = "1.0.0-lab"

// Payload is one that tests share. It is made when a test first asks for it.
type Payload struct {
	agent   string
	options payload.Options
	once    sync.Once
	dir     string
	err     error
}

// NewPayload returns a payload with an agent, by the path of its program; without one its agent is made up, as the
// other programs are.
func NewPayload(agent string, options payload.Options) *Payload {
	return &Payload{agent: agent, options: options}
}

// Directory is where the payload lies. It ends the test when it cannot be made.
func (p *Payload) Directory(t testing.TB) string {
	t.Helper()
	p.once.Do(p.generate)
	if p.err != nil {
		t.Fatalf("make the payload (is %s built?): %v", p.agent, p.err)
	}
	return p.dir
}

func (p *Payload) generate() {
	if p.dir, p.err = os.MkdirTemp("", "wmco-test-payload-"); p.err == nil {
		_, p.err = payload.Generate(p.dir, p.agent, version, p.options)
	}
}

// Remove takes the payload away if a test asked for it. It returns 1 and says why if that fails, else 0.
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
