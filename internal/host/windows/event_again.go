package windows

import (
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
)

// errLogChanged is ERROR_EVENTLOG_FILE_CHANGED (1503): the log was cleared since the last call. The old handle reads
// no more events. A new handle reads the log from its newest event.
var errLogChanged = errors.New("the log was cleared")

// maxLogReads is the maximum number of times that one read opens a log, because other programs may clear the log
// repeatedly.
const maxLogReads = 4

// logReader is an open event log.
type logReader interface {
	// nextRecords returns the next records, newest first, and no records after the oldest. The records are valid until
	// the next call.
	nextRecords() ([]byte, error)
	close()
}

// readBatches delivers the events of a log until deliver returns false. If the log is cleared in the meantime,
// readBatches continues with the events since then: it opens the log again, at most maxLogReads times, and delivers
// no event twice.
func readBatches(open func() (logReader, error), deliver func([]host.LoggedEvent) (more bool)) error {
	seen := map[recordKey]bool{}
	var err error
	for range maxLogReads {
		if err = readOpened(open, seen, deliver); !errors.Is(err, errLogChanged) {
			return err
		}
	}
	return fmt.Errorf("%w during each of %d attempts", err, maxLogReads)
}

func readOpened(open func() (logReader, error), seen map[recordKey]bool, deliver func([]host.LoggedEvent) bool) error {
	log, err := open()
	if err != nil {
		return err
	}
	defer log.close()
	for {
		records, err := log.nextRecords()
		if err != nil || len(records) == 0 {
			return err
		}
		batch, err := parseEvents(records, seen)
		if err != nil {
			return err
		}
		if !deliver(batch) {
			return nil
		}
	}
}
