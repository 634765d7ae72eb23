// Package recorder defines the events of all controllers, and records them with notes that are readable and
// accepted by the API server: one line of printable characters, at most 1,024 bytes.
package recorder

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// MaxNoteLength is the API server's limit for the note of an event, in bytes.
const MaxNoteLength = 1024

// Event is one Kubernetes event. Each package creates its events in its own constructors, so that one file
// contains all events of the package.
type Event struct {
	regarding, related runtime.Object
	eventType, reason  string
	Action, Message    string
}

// Normal returns an event about a normal state.
func Normal(regarding, related runtime.Object, reason, action, message string) Event {
	return Event{regarding, related, corev1.EventTypeNormal, reason, action, message}
}

// Warning returns an event that requires the attention of an administrator.
func Warning(regarding, related runtime.Object, reason, action, message string) Event {
	return Event{regarding, related, corev1.EventTypeWarning, reason, action, message}
}

// Emit records an event. Without a regarding object, Emit does nothing.
func Emit(to events.EventRecorder, e Event) {
	if isNil(e.regarding) {
		return
	}
	if isNil(e.related) {
		e.related = nil
	}
	to.Eventf(e.regarding, e.related, e.eventType, e.reason, e.Action, "%s", e.Message)
}

// isNil reports whether the object is nil. An interface with a nil pointer is not a nil interface.
func isNil(object runtime.Object) bool { return object == nil || reflect.ValueOf(object).IsNil() }

// Bounded returns a recorder that shortens each note to the limit, and forwards the event.
func Bounded(to events.EventRecorder) events.EventRecorder { return bounded{to} }

type bounded struct{ to events.EventRecorder }

// Eventf implements events.EventRecorder.
func (b bounded) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	b.to.Eventf(regarding, related, eventType, reason, action, "%s",
		sanitize.Shorten(sanitize.Printable(fmt.Sprintf(note, args...)), MaxNoteLength))
}
