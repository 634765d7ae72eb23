package windows

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestEventTexts(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"a plain message stays as it is": {"Service kubelet was started.",
			"Service kubelet was started."},
		"a percent sign before a digit is no place for text": {"fe80::1%12 and %1%2", "fe80::1% 12 and % 1% 2"},
		"any other percent sign stays":                       {"100 %, %SystemRoot%, %", "100 %, %SystemRoot%, %"},
		"a NUL does not cut the message":                     {"a\x00b", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			units := eventText(c.message)
			if got := string(utf16.Decode(units[:len(units)-1])); got != c.want || units[len(units)-1] != 0 {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("too long a message is cut", func(t *testing.T) {
		if got := len(eventText(strings.Repeat("x", 40000))); got != maxEventUnits+1 {
			t.Errorf("got %d units", got)
		}
	})
}

func TestCheckEvent_InvalidEventRejected(t *testing.T) {
	valid := host.Event{Source: "windows-instance-config-daemon", Level: host.EventWarning, ID: 1000, Message: "text"}
	if kind, err := checkEvent(valid); err != nil || kind != 2 {
		t.Fatalf("a valid event: type %d, %v", kind, err)
	}
	for name, change := range map[string]func(*host.Event){
		"without a source":                      func(e *host.Event) { e.Source = "" },
		"with a path for a source":              func(e *host.Event) { e.Source = `..\System` },
		"without an ID":                         func(e *host.Event) { e.ID = 0 },
		"with an ID that has no message":        func(e *host.Event) { e.ID = 1001 },
		"of a level that Windows does not have": func(e *host.Event) { e.Level = "Fatal" },
	} {
		t.Run("an event "+name, func(t *testing.T) {
			event := valid
			change(&event)
			if _, err := checkEvent(event); !errors.Is(err, errEvent) {
				t.Errorf("got %v", err)
			}
		})
	}
}
