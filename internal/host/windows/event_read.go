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
	// errorLogFileChanged is ERROR_EVENTLOG_FILE_CHANGED.
	errorLogFileChanged = windows.Errno(1503)
	// sequentialBackwards is EVENTLOG_SEQUENTIAL_READ | EVENTLOG_BACKWARDS_READ.
	sequentialBackwards = 0x1 | 0x8
	// recordLimit is the maximum size of a buffer for ReadEventLogW, in bytes. A buffer of this size holds any
	// record.
	recordLimit = 0x7ffff
)

var (
	advapi32      = windows.NewLazySystemDLL("advapi32.dll")
	openEventLog  = advapi32.NewProc("OpenEventLogW")
	readEventLog  = advapi32.NewProc("ReadEventLogW")
	closeEventLog = advapi32.NewProc("CloseEventLog")
)

// Read calls each for the events of a log, newest first.
func (eventLog) Read(ctx context.Context, log string, each func(host.LoggedEvent) bool) error {
	// For an unknown log, Windows opens the log Application instead.
	if log != "Application" && log != "System" {
		return fmt.Errorf("read the event log %q: %w", log, host.ErrNotExist)
	}
	batches, handled := make(chan []host.LoggedEvent), make(chan struct{})
	gone, ended := make(chan struct{}), make(chan error, 1)
	defer close(gone)
	go func() { ended <- readLog(log, batches, handled, gone) }()
	for {
		select {
		case batch := <-batches:
			for _, event := range batch {
				if !each(event) {
					return nil
				}
			}
			handled <- struct{}{}
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("read the event log %s: %w", log, translateError(err))
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("read the event log %s: %w", log, context.Cause(ctx))
		}
	}
}

// readLog sends the events of a log to batches until the log ends or gone is closed. The next batch is read only
// after the receiver has handled the previous batch.
func readLog(log string, batches chan<- []host.LoggedEvent, handled, gone <-chan struct{}) error {
	return readBatches(func() (logReader, error) { return openLog(log) }, func(batch []host.LoggedEvent) bool {
		select {
		case batches <- batch:
		case <-gone:
			return false
		}
		select {
		case <-handled:
			return true
		case <-gone:
			return false
		}
	})
}

// openedLog implements logReader with Windows.
type openedLog struct {
	handle uintptr
	buffer []byte
}

func openLog(log string) (logReader, error) {
	name, err := windows.UTF16PtrFromString(log)
	if err != nil {
		return nil, err
	}
	handle, _, err := openEventLog.Call(0, uintptr(unsafe.Pointer(name)))
	if handle == 0 {
		return nil, err
	}
	return openedLog{handle, make([]byte, recordLimit)}, nil
}

func (l openedLog) close() { _, _, _ = closeEventLog.Call(l.handle) }

func (l openedLog) nextRecords() ([]byte, error) {
	var read, needed uint32
	ok, _, err := readEventLog.Call(l.handle, sequentialBackwards, 0, uintptr(unsafe.Pointer(&l.buffer[0])), uintptr(len(l.buffer)),
		uintptr(unsafe.Pointer(&read)), uintptr(unsafe.Pointer(&needed)))
	switch {
	case ok != 0:
		return l.buffer[:read], nil
	case errors.Is(err, errorHandleEOF):
		return nil, nil
	case errors.Is(err, errorLogFileChanged):
		return nil, errLogChanged
	}
	return nil, err
}
