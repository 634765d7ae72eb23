//go:build windows

package windows

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// errorHandleEOF is ERROR_HANDLE_EOF: the log has been read to its end.
const errorHandleEOF = windows.Errno(38)

// eventRecord is the fixed part of an EVENTLOGRECORD; source and computer name follow it.
type eventRecord struct {
	Length, Reserved, Number, Generated, Written, ID uint32
	Type, Strings, Category, Flags                   uint16
	Closing, StringOffset                            uint32
	SIDLength, SIDOffset, DataLength, DataOffset     uint32
}

// readEvents reads the log with ReadEventLogW, because the product only writes it.
func readEvents(_ context.Context, source string) ([]host.Event, error) {
	library := windows.NewLazySystemDLL("advapi32.dll")
	name, err := windows.UTF16PtrFromString("Application")
	if err != nil {
		return nil, err
	}
	log, _, err := library.NewProc("OpenEventLogW").Call(0, uintptr(unsafe.Pointer(name)))
	if log == 0 {
		return nil, fmt.Errorf("open the event log: %w", err)
	}
	defer func() { _, _, _ = library.NewProc("CloseEventLog").Call(log) }()
	var events []host.Event
	buffer := make([]byte, 512<<10) // more than any record has
	for {
		const sequentialForwards = 0x1 | 0x4
		var read, needed uint32
		ok, _, err := library.NewProc("ReadEventLogW").Call(log, sequentialForwards, 0, uintptr(unsafe.Pointer(&buffer[0])),
			uintptr(len(buffer)), uintptr(unsafe.Pointer(&read)), uintptr(unsafe.Pointer(&needed)))
		switch {
		case ok == 0 && errors.Is(err, errorHandleEOF):
			return events, nil
		case ok == 0:
			return nil, fmt.Errorf("read the event log: %w", err)
		}
		found, err := parseEvents(buffer[:read], source)
		if err != nil {
			return nil, err
		}
		events = append(events, found...)
	}
}

func parseEvents(records []byte, source string) ([]host.Event, error) {
	levels := map[uint16]host.EventLevel{1: host.EventError, 2: host.EventWarning, 4: host.EventInformation}
	var events []host.Event
	for len(records) > 0 {
		var record eventRecord
		if err := binary.Read(bytes.NewReader(records), binary.LittleEndian, &record); err != nil {
			return nil, err
		}
		if int(record.Length) < binary.Size(record) || int(record.Length) > len(records) ||
			record.StringOffset > record.Length {
			return nil, fmt.Errorf("a record of the event log says that it has %d bytes", record.Length)
		}
		body := records[:record.Length]
		records = records[record.Length:]
		if text(body[binary.Size(record):]) != source || record.Strings == 0 {
			continue
		}
		events = append(events, host.Event{
			Source: source, Level: levels[record.Type], ID: record.ID & 0xffff,
			Message: strings.ReplaceAll(text(body[record.StringOffset:]), "\r\n", "\n"),
		})
	}
	return events, nil
}

// text returns the UTF-16 text up to the first zero.
func text(data []byte) string {
	var units []uint16
	for ; len(data) > 1 && (data[0] != 0 || data[1] != 0); data = data[2:] {
		units = append(units, binary.LittleEndian.Uint16(data))
	}
	return string(utf16.Decode(units))
}
