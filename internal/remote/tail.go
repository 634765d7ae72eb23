package remote

import (
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// tailLimit is the maximum number of bytes of other program output kept for an error message.
const tailLimit = 4096

// tail is a writer that keeps the last tailLimit bytes.
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

// messageLines is the maximum number of quoted output lines in an error message.
const messageLines = 5

// String returns the last lines joined into one line, safe for a message.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(string(t.data)) {
		if line = sanitizeText(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-messageLines):], " | ")
}

// messageLimit is the maximum size of one quotation in a message, in bytes.
const messageLimit = 500

// sanitizeText makes untrusted text safe for a log or a status: printable and of limited length.
func sanitizeText(foreign string) string {
	return sanitize.Shorten(sanitize.Printable(foreign), messageLimit)
}
