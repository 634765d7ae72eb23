package windows

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/windows-machine-config/wmco/internal/host"
)

// eventRecord is the fixed part of an EVENTLOGRECORD. The source and the computer name follow.
type eventRecord struct {
	Length, Reserved, Number, Generated, Written, ID uint32
	Type, Strings, Category, Flags                   uint16
	Closing, StringOffset                            uint32
	SIDLength, SIDOffset, DataLength, DataOffset     uint32
}

// recordKey identifies a record of an event log by its content, including the number and the time. The number alone
// is not unique, because a cleared log may count from 1 again.
type recordKey [sha256.Size]byte

// parseEvents parses the records that one call of ReadEventLog returned. Records in seen are skipped, and other
// records are added to seen. The message of an event consists of its strings, because the surrounding text is in a
// file of the event source.
func parseEvents(records []byte, seen map[recordKey]bool) ([]host.LoggedEvent, error) {
	var events []host.LoggedEvent
	for len(records) > 0 {
		var record eventRecord
		if err := binary.Read(bytes.NewReader(records), binary.LittleEndian, &record); err != nil {
			return nil, fmt.Errorf("a record of the event log is truncated: %w", err)
		}
		fixed := binary.Size(record)
		if int(record.Length) < fixed || int(record.Length) > len(records) || record.StringOffset > record.Length {
			return nil, fmt.Errorf("a record of the event log has the invalid size of %d bytes", record.Length)
		}
		body := records[:record.Length]
		records = records[record.Length:]
		key := recordKey(sha256.Sum256(body))
		if seen[key] {
			continue
		}
		seen[key] = true
		source, _ := nextText(body[fixed:])
		events = append(events, host.LoggedEvent{
			Time: time.Unix(int64(record.Generated), 0).UTC(),
			Event: host.Event{Source: source, Level: levelOf(record.Type), ID: record.ID & 0xffff,
				Message: joinTexts(body[record.StringOffset:], int(record.Strings))},
		})
	}
	return events, nil
}

// levelOf returns the level for an event type. Audit types, which these logs do not contain, count as information.
func levelOf(kind uint16) host.EventLevel {
	switch kind {
	case eventError:
		return host.EventError
	case eventWarning:
		return host.EventWarning
	}
	return host.EventInformation
}

// joinTexts joins the given number of NUL-terminated strings.
func joinTexts(data []byte, count int) string {
	var list []string
	for range count {
		var text string
		if text, data = nextText(data); text != "" {
			list = append(list, strings.ReplaceAll(text, "\r\n", "\n"))
		}
	}
	return strings.Join(list, "; ")
}

// nextText returns the UTF-16 text up to the first NUL, and the data behind the NUL.
func nextText(data []byte) (text string, rest []byte) {
	var units []uint16
	for len(data) > 1 {
		unit := binary.LittleEndian.Uint16(data)
		data = data[2:]
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units)), data
}
