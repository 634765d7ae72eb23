package windows

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Limits of an event.
const (
	// maxEventUnits is the longest text of an event, in UTF-16 units (ReportEvent, parameter lpStrings).
	maxEventUnits = 31839
	// maxEventID is the highest ID that the message file of eventcreate.exe has, which sources without a message file of
	// their own use.
	maxEventID = 1000
)

// Types of an event.
const (
	eventError       = 1 // EVENTLOG_ERROR_TYPE
	eventWarning     = 2 // EVENTLOG_WARNING_TYPE
	eventInformation = 4 // EVENTLOG_INFORMATION_TYPE
)

var errEvent = errors.New("the parameter is incorrect")

// checkEvent returns the type of an event that can be written.
func checkEvent(event host.Event) (uint16, error) {
	if event.Source == "" || strings.ContainsAny(event.Source, "\\\x00") || event.ID < 1 || event.ID > maxEventID {
		return 0, fmt.Errorf("%w (source %q, ID %d)", errEvent, event.Source, event.ID)
	}
	switch event.Level {
	case host.EventInformation:
		return eventInformation, nil
	case host.EventWarning:
		return eventWarning, nil
	case host.EventError:
		return eventError, nil
	}
	return 0, fmt.Errorf("%w (level %q)", errEvent, event.Level)
}

// eventText returns a message as the event log takes it: without NUL, not too long, and with a blank between a percent
// sign and a digit, which the viewer would take for the place of another text.
func eventText(message string) []uint16 {
	message = strings.ReplaceAll(message, "\x00", " ")
	var b strings.Builder
	for i, c := range message {
		b.WriteRune(c)
		if c == '%' && i+1 < len(message) && message[i+1] >= '0' && message[i+1] <= '9' {
			b.WriteByte(' ')
		}
	}
	units := utf16.Encode([]rune(b.String()))
	if len(units) > maxEventUnits {
		units = units[:maxEventUnits]
	}
	return append(units, 0)
}
