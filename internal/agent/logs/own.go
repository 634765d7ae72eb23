// Package logs implements the log of the agent's service, and rotates the logs of the node's other services. It
// defines the names of rotated files. Callers decide which lines to log.
package logs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Rotation of the log of the agent's service.
const (
	// MaxFileSize is the size in bytes at which the file is rotated.
	MaxFileSize = 1 << 20
	// MaxFileAge is the retention time of a rotated file after its last line.
	MaxFileAge = 30 * 24 * time.Hour
	// MaxFiles is the maximum number of rotated files.
	MaxFiles = 5
)

// maxPending is the maximum number of bytes pending for an unwritable log.
const maxPending = 64 << 10

// ServiceLog is the log of the agent's service. ServiceLog rotates the file itself. A library such as lumberjack
// supports only complete megabytes and days, and bypasses package host. It also keeps the file open, so that
// administrators could not remove the file.
type ServiceLog struct {
	host    host.Host
	clock   clock.PassiveClock
	copy    io.Writer
	pending string // lines not yet in the file
}

// NewServiceLog returns the log of the service; each line is also written to the copy.
func NewServiceLog(h host.Host, clock clock.PassiveClock, to io.Writer) *ServiceLog {
	return &ServiceLog{host: h, clock: clock, copy: to}
}

func logFile() string { return nodespec.LogPath(nodespec.ServiceAgent) }

// Printf adds a line. An unwritable log does not stop the service.
func (l *ServiceLog) Printf(ctx context.Context, format string, arguments ...any) {
	line := l.clock.Now().UTC().Format(time.RFC3339) + " " + strings.ReplaceAll(fmt.Sprintf(format, arguments...), "\n", " ") + "\r\n"
	_, _ = io.WriteString(l.copy, line)
	if len(l.pending)+len(line) <= maxPending {
		l.pending += line
	}
	l.Flush(ctx)
}

// Flush writes the pending lines. After a failure, for example because the directory does not exist yet, the
// lines stay pending.
func (l *ServiceLog) Flush(ctx context.Context) {
	if l.pending == "" {
		return
	}
	l.rotateFile(ctx)
	options := host.WriteOptions{Access: host.AccessInherited, Append: true}
	if l.host.Files.Write(ctx, logFile(), strings.NewReader(l.pending), options) == nil {
		l.pending = ""
	}
	l.deleteOldFiles(ctx)
}

// rotateFile renames a full file. A file held open by another program grows until released. The agent of a
// legacy operator leaves a symbolic link to its last log here, as klog does: the link is removed, the log is kept.
func (l *ServiceLog) rotateFile(ctx context.Context) {
	info, err := l.host.Files.Stat(ctx, logFile())
	if err == nil && info.LinkTarget != "" {
		_ = l.host.Files.Remove(ctx, logFile())
		return
	}
	if err != nil || info.Size == 0 || info.Size+int64(len(l.pending)) <= MaxFileSize {
		return
	}
	rotated := rotatedPath(logFile(), l.clock.Now())
	if _, err := l.host.Files.Stat(ctx, rotated); err == nil {
		return // a second rotation within a second would replace the first
	}
	_ = l.host.Tree.Rename(ctx, logFile(), rotated)
}

// deleteOldFiles removes rotated files that are too many or too old.
func (l *ServiceLog) deleteOldFiles(ctx context.Context) {
	entries, err := l.host.Files.ReadDir(ctx, nodespec.LogDirectory(nodespec.ServiceAgent))
	if err != nil {
		return
	}
	rotated := slices.DeleteFunc(entries, func(entry host.FileInfo) bool { _, is := rotatedAt(logFile(), entry.Name); return !is })
	slices.SortFunc(rotated, func(a, b host.FileInfo) int { return strings.Compare(b.Name, a.Name) }) // newest first
	for i, entry := range rotated {
		if i >= MaxFiles || l.clock.Since(entry.Modified) > MaxFileAge {
			_ = l.host.Files.Remove(ctx, entry.Path)
		}
	}
}
