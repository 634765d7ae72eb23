// Package logprinter prints logs of services: the list of services, the end of a log, and new lines. A Source
// reads the logs.
package logprinter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// ErrNotFound is the error for a missing file or directory.
var ErrNotFound = errors.New("not found")

// ErrGone is the error of a source that cannot be read again.
var ErrGone = errors.New("the logs of the host can no longer be read")

// Part is a part of a file.
type Part struct {
	Body []byte
	// From is the offset of the part, and Size the size of the file, in bytes.
	From, Size int64
	// Modified is the time of the last write to the file.
	Modified time.Time
}

// endOffset returns the offset after the part.
func (p Part) endOffset() int64 { return p.From + int64(len(p.Body)) }

// Source provides the logs of one host.
type Source interface {
	// Services returns the services with a log directory.
	Services(ctx context.Context) ([]string, error)
	// Current returns the current log of a service. If the service has no log, the error is ErrNotFound.
	Current(ctx context.Context, service string) (path string, err error)
	// From reads a log from an offset on, to its end or less. If the log is not longer, the part is empty.
	// ErrGone means that no more data will follow.
	From(ctx context.Context, path string, offset int64) (Part, error)
	// Last reads at most the given number of bytes at the end of a log, or fewer if the source limits its memory.
	Last(ctx context.Context, path string, bytes int64) (Part, error)
}

// CurrentLog returns the name of a service's current log among the files of the log directory; "" without a log.
// The name configured by operators has precedence, and then the shortest name, because the names of rotated
// logs also contain a time.
func CurrentLog(service string, names []string) string {
	_, usual := splitPath(nodespec.LogPath(service))
	if slices.Contains(names, usual) {
		return usual
	}
	logs := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, ".log") })
	if len(logs) == 0 {
		return ""
	}
	return slices.MinFunc(logs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}

// DirectoryName returns the name of the directory of a service's logs, below nodespec.LogRoot.
func DirectoryName(service string) string {
	folder, _ := splitPath(nodespec.LogPath(service))
	_, name := splitPath(folder)
	return name
}

// ServiceOf returns the service with logs in a directory below nodespec.LogRoot; the name of the directory if
// no operator creates it.
func ServiceOf(folder string) string {
	for _, service := range nodespec.ServiceNames() {
		if DirectoryName(service) == folder {
			return service
		}
	}
	return folder
}

func splitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '\\')
	return path[:i], path[i+1:]
}
