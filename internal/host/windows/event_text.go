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
	// maxEventUnits is the maximum length of an event text, in UTF-16 units (ReportEvent, parameter lpStrings).
	maxEventUnits = 31839
	// maxEventID is the maximum ID in the message file of eventcreate.exe, which sources without their own message
	// file use.
	maxEventID = 1000
)

// Types of an event.
const (
	eventError       = 1 // EVENTLOG_ERROR_TYPE
	eventWarning     = 2 // EVENTLOG_WARNING_TYPE
	eventInformation = 4 // EVENTLOG_INFORMATION_TYPE
)

var errEvent = errors.New("the parameter is incorrect")

// checkEvent returns the Windows type of an event, or an error if the event cannot be written.
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

// eventText returns a message in the form required by the event log: without NUL and limited in length. It inserts a
// blank between a percent sign and a digit, because Event Viewer would replace that sequence by another text.
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
