package windows

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

// encodeEvent returns an event in the format of ReadEventLog. The record number is the event ID.
func encodeEvent(source string, kind uint16, id uint32, at time.Time, strings ...string) []byte {
	return encodeNumberedEvent(id, source, kind, id, at, strings...)
}

// encodeNumberedEvent returns the record of an event with a number.
func encodeNumberedEvent(number uint32, source string, kind uint16, id uint32, at time.Time, strings ...string) []byte {
	var rest bytes.Buffer
	text := func(s string) {
		for _, unit := range append(utf16.Encode([]rune(s)), 0) {
			_ = binary.Write(&rest, binary.LittleEndian, unit) // writes to memory do not fail
		}
	}
	r := eventRecord{Number: number, Generated: uint32(at.Unix()), ID: id, Type: kind, Strings: uint16(len(strings))}
	text(source)
	text("WIN-1")
	r.StringOffset = uint32(binary.Size(r) + rest.Len())
	for _, s := range strings {
		text(s)
	}
	r.Length = uint32(binary.Size(r)+rest.Len()) + 4
	var record bytes.Buffer
	_ = binary.Write(&record, binary.LittleEndian, r)
	record.Write(rest.Bytes())
	_ = binary.Write(&record, binary.LittleEndian, r.Length)
	return record.Bytes()
}

func TestParseEvents_ReadsRecords(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	records := append(encodeEvent("Service Control Manager", eventError, 0xc0001b7a, at, "kubelet", "1"),
		append(encodeEvent("windows-instance-config-daemon", eventWarning, 2, at, "Grüße 🔒\r\nzwei"), encodeEvent("EventLog", 0, 0x80001775, at)...)...)
	got, err := parseEvents(records, map[recordKey]bool{})
	if err != nil {
		t.Fatal(err)
	}
	event := func(source string, level host.EventLevel, id uint32, message string) host.LoggedEvent {
		return host.LoggedEvent{Time: at, Event: host.Event{Source: source, Level: level, ID: id, Message: message}}
	}
	if diff := cmp.Diff([]host.LoggedEvent{event("Service Control Manager", host.EventError, 7034, "kubelet; 1"),
		event("windows-instance-config-daemon", host.EventWarning, 2, "Grüße 🔒\nzwei"),
		event("EventLog", host.EventInformation, 6005, "")}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseEvents_DamagedRecordIsError(t *testing.T) {
	record := encodeEvent("EventLog", eventError, 1, time.Unix(0, 0), "text")
	for name, change := range map[string]func(r []byte) []byte{
		"cut off in its fixed part":    func(r []byte) []byte { return r[:20] },
		"shorter than it says":         func(r []byte) []byte { return r[:len(r)-8] },
		"with a length of nothing":     func(r []byte) []byte { copy(r, []byte{0, 0, 0, 0}); return r },
		"with strings beyond its end":  func(r []byte) []byte { copy(r[36:], []byte{255, 255, 0, 0}); return r },
		"followed by part of another":  func(r []byte) []byte { return append(r, r[:10]...) },
		"with a length beyond the end": func(r []byte) []byte { copy(r, []byte{255, 255, 255, 127}); return r },
	} {
		t.Run(name, func(t *testing.T) {
			if events, err := parseEvents(change(bytes.Clone(record)), map[recordKey]bool{}); err == nil {
				t.Errorf("it is %+v", events)
			}
		})
	}
}

func FuzzParseEvents(f *testing.F) {
	f.Add(encodeEvent("EventLog", eventError, 1, time.Unix(0, 0), "text"))
	f.Fuzz(func(_ *testing.T, records []byte) {
		_, _ = parseEvents(records, map[recordKey]bool{}) // it must end without a panic
	})
}
