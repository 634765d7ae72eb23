package windows

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// clearedLog is an event log that is cleared during a read.
type clearedLog struct {
	contents [][]uint32 // numbers of the records, newest first, for each opening of the log
	clears   int        // number of handles that fail after their first record
	opened   int
	closed   int
	failure  error // error of each call instead of records
}

type clearedHandle struct {
	log   *clearedLog
	left  []uint32
	fails bool
	calls int
}

func (l *clearedLog) openHandle() (logReader, error) {
	h := &clearedHandle{log: l, left: l.contents[min(l.opened, len(l.contents)-1)], fails: l.opened < l.clears}
	l.opened++
	return h, nil
}

func (h *clearedHandle) close() { h.log.closed++ }

func (h *clearedHandle) nextRecords() ([]byte, error) {
	h.calls++
	switch {
	case h.log.failure != nil:
		return nil, h.log.failure
	case h.fails && h.calls > 1:
		return nil, errLogChanged
	case len(h.left) == 0:
		return nil, nil
	}
	number := h.left[0]
	h.left = h.left[1:]
	return bytes.Clone(encodeNumberedEvent(number, "EventLog", eventInformation, number, time.Unix(int64(number), 0))), nil
}

func TestReadBatches_ClearedLogReadAgain(t *testing.T) {
	read := func(l *clearedLog, most int) (ids []uint32, err error) {
		err = readBatches(l.openHandle, func(batch []host.LoggedEvent) bool {
			for _, event := range batch {
				ids = append(ids, event.ID)
			}
			return len(ids) < most
		})
		if l.opened != l.closed {
			t.Errorf("%d handles were opened and %d closed", l.opened, l.closed)
		}
		return ids, err
	}
	t.Run("the events since then follow those that were read", func(t *testing.T) {
		ids, err := read(&clearedLog{contents: [][]uint32{{3, 2, 1}, {5, 4}}, clears: 1}, 100)
		if want := []uint32{3, 5, 4}; err != nil || !slices.Equal(ids, want) {
			t.Errorf("got %v, %v, want %v", ids, err, want)
		}
	})
	t.Run("no event is read twice", func(t *testing.T) {
		ids, err := read(&clearedLog{contents: [][]uint32{{3, 2, 1}, {4, 3, 2, 1}}, clears: 1}, 100)
		if want := []uint32{3, 4, 2, 1}; err != nil || !slices.Equal(ids, want) {
			t.Errorf("got %v, %v, want %v", ids, err, want)
		}
	})
	t.Run("a log that is cleared again and again is an error", func(t *testing.T) {
		log := &clearedLog{contents: [][]uint32{{1, 2}}, clears: 1000}
		if _, err := read(log, 100); !errors.Is(err, errLogChanged) || log.opened != maxLogReads {
			t.Errorf("got %v after %d openings", err, log.opened)
		}
	})
	t.Run("another failure is returned at once", func(t *testing.T) {
		failure := errors.New("access denied")
		log := &clearedLog{contents: [][]uint32{{1}}, failure: failure}
		if _, err := read(log, 100); !errors.Is(err, failure) || log.opened != 1 {
			t.Errorf("got %v after %d openings", err, log.opened)
		}
	})
	t.Run("no more is read than is wanted", func(t *testing.T) {
		if ids, err := read(&clearedLog{contents: [][]uint32{{3, 2, 1}}}, 2); err != nil || len(ids) != 2 {
			t.Errorf("got %v, %v", ids, err)
		}
	})
}
