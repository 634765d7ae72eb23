// Package recorder records events with notes that people can read and the API server accepts: one line of printable
// characters, at most 1,024 bytes.
package recorder

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/internal/text"
)

// LongestNote is the limit of the API server for an event's note, in bytes.
const LongestNote = 1024

// Bounded returns a recorder that makes each note fit, and passes the event on.
func Bounded(to events.EventRecorder) events.EventRecorder { return bounded{to} }

type bounded struct{ to events.EventRecorder }

// Eventf implements events.EventRecorder.
func (b bounded) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	b.to.Eventf(regarding, related, eventType, reason, action, "%s",
		text.Shortened(text.Printable(fmt.Sprintf(note, args...)), LongestNote))
}
