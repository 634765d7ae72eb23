//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	// errorHandleEOF is ERROR_HANDLE_EOF: the log has been read to its end.
	errorHandleEOF = windows.Errno(38)
	// sequentialBackwards is EVENTLOG_SEQUENTIAL_READ | EVENTLOG_BACKWARDS_READ.
	sequentialBackwards = 0x1 | 0x8
	// recordLimit is the largest buffer that ReadEventLogW takes, in bytes, and holds any record.
	recordLimit = 0x7ffff
)

var (
	advapi32      = windows.NewLazySystemDLL("advapi32.dll")
	openEventLog  = advapi32.NewProc("OpenEventLogW")
	readEventLog  = advapi32.NewProc("ReadEventLogW")
	closeEventLog = advapi32.NewProc("CloseEventLog")
)

// Read goes through the events of a log, the newest first.
func (eventLog) Read(ctx context.Context, log string, each func(host.LoggedEvent) bool) error {
	// Windows opens the log Application in place of one that it does not have.
	if log != "Application" && log != "System" {
		return fmt.Errorf("read the event log %q: %w", log, host.ErrNotExist)
	}
	batches, gone, ended := make(chan []host.LoggedEvent), make(chan struct{}), make(chan error, 1)
	defer close(gone)
	go func() { ended <- readLog(log, batches, gone) }()
	for {
		select {
		case batch := <-batches:
			for _, event := range batch {
				if !each(event) {
					return nil
				}
			}
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("read the event log %s: %w", log, translate(err))
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("read the event log %s: %w", log, context.Cause(ctx))
		}
	}
}

// readLog hands out the events of a log until nobody is there any more.
func readLog(log string, batches chan<- []host.LoggedEvent, gone <-chan struct{}) error {
	name, err := windows.UTF16PtrFromString(log)
	if err != nil {
		return err
	}
	handle, _, err := openEventLog.Call(0, uintptr(unsafe.Pointer(name)))
	if handle == 0 {
		return err
	}
	defer func() { _, _, _ = closeEventLog.Call(handle) }()
	buffer := make([]byte, recordLimit)
	for {
		var read, needed uint32
		ok, _, err := readEventLog.Call(handle, sequentialBackwards, 0, uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)),
			uintptr(unsafe.Pointer(&read)), uintptr(unsafe.Pointer(&needed)))
		switch {
		case ok == 0 && errors.Is(err, errorHandleEOF):
			return nil
		case ok == 0:
			return err
		}
		batch, err := parseEvents(buffer[:read])
		if err != nil {
			return err
		}
		select {
		case batches <- batch:
		case <-gone:
			return nil
		}
	}
}
