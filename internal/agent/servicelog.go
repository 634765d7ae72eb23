package agent

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// LogSettings say how the log of the agent's service rotates.
type LogSettings struct {
	// FileSize is the size in bytes at which the file gets another name and a new one begins.
	FileSize int64
	// FileAge is how long after its last line a file with another name is kept.
	FileAge time.Duration
	// Files is how many files with other names are kept at most.
	Files int
	// FlushInterval is how long lines may wait in memory; 0 writes each at once.
	FlushInterval time.Duration
}

// DefaultLogSettings rotate at 1 MiB and keep 5 files for 30 days.
func DefaultLogSettings() LogSettings {
	return LogSettings{FileSize: 1 << 20, FileAge: 30 * 24 * time.Hour, Files: 5}
}

const (
	// rotatedLayout is the time in the name of a file that was rotated away. kube-log-runner names those of the other services so too.
	rotatedLayout = "20060102-150405"
	// maxPending is how many bytes wait at most for a log that cannot be written.
	maxPending = 64 << 10
)

// serviceLog is the log of the agent's service. It rotates by itself rather than by a library such as lumberjack, which takes whole
// megabytes and days, writes past package host, and keeps the file open, so that no administrator could take it away.
type serviceLog struct {
	*agent
	copy     io.Writer
	settings LogSettings
	pending  string    // lines that are not in the file yet
	flushed  time.Time // when lines were last written
}

func newServiceLog(a *agent, to io.Writer, settings LogSettings) *serviceLog {
	if settings == (LogSettings{}) {
		settings = DefaultLogSettings()
	}
	return &serviceLog{agent: a, copy: to, settings: settings}
}

func logFile() string { return nodespec.LogDirectory(nodespec.ServiceAgent) + `\wicd.log` }

// printf adds a line. A log that cannot be written keeps nobody from working.
func (l *serviceLog) printf(ctx context.Context, format string, arguments ...any) {
	line := l.clock.Now().UTC().Format(time.RFC3339) + " " + strings.ReplaceAll(fmt.Sprintf(format, arguments...), "\n", " ") + "\r\n"
	_, _ = io.WriteString(l.copy, line)
	if len(l.pending)+len(line) <= maxPending {
		l.pending += line
	}
	l.flushDue(ctx)
}

// flushDue writes the lines that have waited for long enough.
func (l *serviceLog) flushDue(ctx context.Context) {
	if l.clock.Since(l.flushed) >= l.settings.FlushInterval {
		l.flush(ctx)
	}
}

// flush writes the lines that wait. When that fails, because nobody has made the folder yet, say, they wait on.
func (l *serviceLog) flush(ctx context.Context) {
	if l.pending == "" {
		return
	}
	l.flushed = l.clock.Now()
	l.rotate(ctx)
	options := host.WriteOptions{Access: host.AccessInherited, Append: true}
	if l.host.Files.Write(ctx, logFile(), strings.NewReader(l.pending), options) == nil {
		l.pending = ""
	}
	l.clean(ctx)
}

// rotate gives a file that is full another name. One that another program holds grows on until it is let go.
func (l *serviceLog) rotate(ctx context.Context) {
	info, err := l.host.Files.Stat(ctx, logFile())
	if err != nil || l.settings.FileSize <= 0 || info.Size == 0 || info.Size+int64(len(l.pending)) <= l.settings.FileSize {
		return
	}
	rotated := rotatedPath(logFile(), l.clock.Now())
	if _, err := l.host.Files.Stat(ctx, rotated); err == nil {
		return // the second rotation within a second would replace the first
	}
	_ = l.host.Tree.Rename(ctx, logFile(), rotated)
}

// clean removes files that were rotated away and are too many or too old.
func (l *serviceLog) clean(ctx context.Context) {
	entries, err := l.host.Files.ReadDir(ctx, nodespec.LogDirectory(nodespec.ServiceAgent))
	if err != nil {
		return
	}
	rotated := slices.DeleteFunc(entries, func(entry host.FileInfo) bool { _, is := rotatedAt(logFile(), entry.Name); return !is })
	slices.SortFunc(rotated, func(a, b host.FileInfo) int { return strings.Compare(b.Name, a.Name) }) // the youngest first
	for i, entry := range rotated {
		tooMany := l.settings.Files > 0 && i >= l.settings.Files
		tooOld := l.settings.FileAge > 0 && l.clock.Since(entry.Modified) > l.settings.FileAge
		if tooMany || tooOld {
			_ = l.host.Files.Remove(ctx, entry.Path)
		}
	}
}
