// Package recorder has events as all controllers make them, and records them with notes that people can read and the
// API server accepts: one line of printable characters, at most 1,024 bytes.
package recorder

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/windows-machine-config/wmco/internal/text"
)

// LongestNote is the limit of the API server for an event's note, in bytes.
const LongestNote = 1024

// Event is one Kubernetes event. Each package makes its events in constructors of its own, so that one file shows
// everything that it reports.
type Event struct {
	regarding, related runtime.Object
	eventType, reason  string
	Action, Message    string
}

// Normal returns an event about something that is as it should be.
func Normal(regarding, related runtime.Object, reason, action, message string) Event {
	return Event{regarding, related, corev1.EventTypeNormal, reason, action, message}
}

// Warning returns an event about something that an administrator should look at.
func Warning(regarding, related runtime.Object, reason, action, message string) Event {
	return Event{regarding, related, corev1.EventTypeWarning, reason, action, message}
}

// Emit records an event, unless there is no object that it is about.
func Emit(to events.EventRecorder, e Event) {
	if isNil(e.regarding) {
		return
	}
	if isNil(e.related) {
		e.related = nil
	}
	to.Eventf(e.regarding, e.related, e.eventType, e.reason, e.Action, "%s", e.Message)
}

// isNil reports whether there is no object. A nil pointer to one is not a nil interface.
func isNil(object runtime.Object) bool { return object == nil || reflect.ValueOf(object).IsNil() }

// Bounded returns a recorder that makes each note fit, and passes the event on.
func Bounded(to events.EventRecorder) events.EventRecorder { return bounded{to} }

type bounded struct{ to events.EventRecorder }

// Eventf implements events.EventRecorder.
func (b bounded) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	b.to.Eventf(regarding, related, eventType, reason, action, "%s",
		text.Shortened(text.Printable(fmt.Sprintf(note, args...)), LongestNote))
}
