// Package logs has the log of the agent's service, and rotates the logs of the node's other services. It
// says where a log lies that was rotated away. What is worth a line is up to those who write it.
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

// How the log of the agent's service rotates.
const (
	// FileSize is the size in bytes at which the file gets another name and a new one begins.
	FileSize = 1 << 20
	// FileAge is how long after its last line a file with another name is kept.
	FileAge = 30 * 24 * time.Hour
	// Files is how many files with other names are kept at most.
	Files = 5
)

// maxPending is how many bytes wait at most for a log that cannot be written.
const maxPending = 64 << 10

// Own is the log of the agent's service. It rotates by itself rather than by a library such as lumberjack, which takes
// whole megabytes and days, writes past package host, and keeps the file open, so that no administrator could take it
// away.
type Own struct {
	host    host.Host
	clock   clock.PassiveClock
	copy    io.Writer
	pending string // lines that are not in the file yet
}

// NewOwn returns the log of the service, of which each line goes to a copy too.
func NewOwn(h host.Host, clock clock.PassiveClock, to io.Writer) *Own {
	return &Own{host: h, clock: clock, copy: to}
}

func logFile() string { return nodespec.LogPath(nodespec.ServiceAgent) }

// Printf adds a line. A log that cannot be written keeps nobody from working.
func (l *Own) Printf(ctx context.Context, format string, arguments ...any) {
	line := l.clock.Now().UTC().Format(time.RFC3339) + " " + strings.ReplaceAll(fmt.Sprintf(format, arguments...), "\n", " ") + "\r\n"
	_, _ = io.WriteString(l.copy, line)
	if len(l.pending)+len(line) <= maxPending {
		l.pending += line
	}
	l.Flush(ctx)
}

// Flush writes the lines that wait. When that fails, because nobody has made the folder yet, say, they wait on.
func (l *Own) Flush(ctx context.Context) {
	if l.pending == "" {
		return
	}
	l.rotate(ctx)
	options := host.WriteOptions{Access: host.AccessInherited, Append: true}
	if l.host.Files.Write(ctx, logFile(), strings.NewReader(l.pending), options) == nil {
		l.pending = ""
	}
	l.clean(ctx)
}

// rotate gives a file that is full another name. One that another program holds grows on until it is let go. The agent of
// the previous operator has left a symbolic link to its last log there, as klog does: the link goes, the log stays.
func (l *Own) rotate(ctx context.Context) {
	info, err := l.host.Files.Stat(ctx, logFile())
	if err == nil && info.LinkTarget != "" {
		_ = l.host.Files.Remove(ctx, logFile())
		return
	}
	if err != nil || info.Size == 0 || info.Size+int64(len(l.pending)) <= FileSize {
		return
	}
	rotated := rotatedPath(logFile(), l.clock.Now())
	if _, err := l.host.Files.Stat(ctx, rotated); err == nil {
		return // the second rotation within a second would replace the first
	}
	_ = l.host.Tree.Rename(ctx, logFile(), rotated)
}

// clean removes files that were rotated away and are too many or too old.
func (l *Own) clean(ctx context.Context) {
	entries, err := l.host.Files.ReadDir(ctx, nodespec.LogDirectory(nodespec.ServiceAgent))
	if err != nil {
		return
	}
	rotated := slices.DeleteFunc(entries, func(entry host.FileInfo) bool { _, is := rotatedAt(logFile(), entry.Name); return !is })
	slices.SortFunc(rotated, func(a, b host.FileInfo) int { return strings.Compare(b.Name, a.Name) }) // the youngest first
	for i, entry := range rotated {
		if i >= Files || l.clock.Since(entry.Modified) > FileAge {
			_ = l.host.Files.Remove(ctx, entry.Path)
		}
	}
}
