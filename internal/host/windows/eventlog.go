//go:build windows

// Events are written with RegisterEventSource and ReportEvent to the log Application. A source is a registry key
// that names a message file. The operator's sources use the message file of Windows' own eventcreate.exe, with
// messages that contain only the text.

package windows

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/eventlog"

	"github.com/windows-machine-config/wmco/internal/host"
)

// applicationLogKey contains one key for each source of the log.
const applicationLogKey = `SYSTEM\CurrentControlSet\Services\EventLog\Application`

// eventLog implements host.EventLog.
type eventLog struct{}

// Report writes an event.
func (eventLog) Report(ctx context.Context, event host.Event) error {
	kind, err := checkEvent(event)
	if err != nil {
		return fmt.Errorf("report an event: %w", err)
	}
	err = runDetached(ctx, func() error {
		source, err := windows.UTF16PtrFromString(event.Source)
		if err != nil {
			return err
		}
		log, err := windows.RegisterEventSource(nil, source)
		if err != nil {
			return translateError(err)
		}
		defer func() { _ = windows.DeregisterEventSource(log) }()
		text := &eventText(event.Message)[0]
		return translateError(windows.ReportEvent(log, kind, 0, event.ID, 0, 1, 0, &text, nil))
	})
	if err != nil {
		return fmt.Errorf("report event %d of %s: %w", event.ID, event.Source, err)
	}
	return nil
}

// HasSource reports whether the log has a source of that name.
func (eventLog) HasSource(ctx context.Context, source string) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err := checkSource(source); err != nil {
		return false, fmt.Errorf("query event source %q: %w", source, err)
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, applicationLogKey+`\`+source, registry.QUERY_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("query event source %s: %w", source, translateError(err))
	}
	_ = key.Close()
	return true, nil
}

// AddSource registers the source.
func (l eventLog) AddSource(ctx context.Context, source string) error {
	known, err := l.HasSource(ctx, source)
	if err != nil {
		return fmt.Errorf("add event source %q: %w", source, err)
	}
	if known {
		return nil
	}
	if err := eventlog.InstallAsEventCreate(source, eventError|eventWarning|eventInformation); err != nil {
		return fmt.Errorf("add event source %s: %w", source, translateError(err))
	}
	return nil
}

// RemoveSource unregisters the source.
func (eventLog) RemoveSource(ctx context.Context, source string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := checkSource(source)
	if err == nil {
		err = eventlog.Remove(source)
	}
	if err != nil && !errors.Is(err, registry.ErrNotExist) {
		return fmt.Errorf("remove event source %q: %w", source, translateError(err))
	}
	return nil
}

// checkSource rejects names that would lead to another registry key.
func checkSource(source string) error {
	if source == "" || strings.ContainsAny(source, "\\\x00") {
		return errEvent
	}
	return nil
}
