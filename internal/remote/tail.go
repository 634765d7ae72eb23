package remote

import (
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/internal/text"
)

// tailLimit is how much of what a program prints besides its answer is kept for an error message.
const tailLimit = 4096

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-tailLimit):]...)
	if excess := len(t.data) - tailLimit; excess > 0 {
		t.data = append(t.data[:0], t.data[excess:]...)
	}
	return len(p), nil
}

// messageLines is how many lines of foreign output an error message quotes.
const messageLines = 5

// String returns the last lines on one line, fit for a message.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(string(t.data)) {
		if line = sanitize(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-messageLines):], " | ")
}

// messageLimit bounds one quoted text in a message, in bytes.
const messageLimit = 500

// sanitize makes foreign text fit for a log or a status: printable, and bounded.
func sanitize(foreign string) string {
	return text.Shortened(text.Printable(foreign), messageLimit)
}
