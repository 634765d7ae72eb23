// Package logprinter prints logs of services: which there are, the end of one, and what is added to it. Where a log is read
// from is up to a Source.
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

// ErrNotThere is the error for a file or folder that is not there.
var ErrNotThere = errors.New("not there")

// ErrGone is the error of a source that cannot be read again.
var ErrGone = errors.New("its logs can be read no more")

// Part is a part of a file.
type Part struct {
	Body []byte
	// From and Size are in bytes: where the part begins, and how large the file was.
	From, Size int64
	// Modified is when the file was written to last.
	Modified time.Time
}

// end is the offset after the part.
func (p Part) end() int64 { return p.From + int64(len(p.Body)) }

// Source has the logs of one host.
type Source interface {
	// Services are the services that have a folder for their logs.
	Services(ctx context.Context) ([]string, error)
	// Current returns the log that a service writes now. It is an error that is ErrNotThere when the service has none.
	Current(ctx context.Context, service string) (path string, err error)
	// From reads a log from an offset on, to its end or less far. One that is not longer gives an empty part. After an
	// error that is ErrGone there is nothing more to come.
	From(ctx context.Context, path string, offset int64) (Part, error)
	// Last reads at most so many bytes at the end of a log, and fewer where the source holds no more in memory.
	Last(ctx context.Context, path string, bytes int64) (Part, error)
}

// Present returns the name of the log that a service writes now, among the files of its folder: the name that operators
// give it, or else the shortest, because rotated logs have a time in their names besides. It is empty when none is a log.
func Present(service string, names []string) string {
	_, usual := split(nodespec.LogPath(service))
	if slices.Contains(names, usual) {
		return usual
	}
	logs := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, ".log") })
	if len(logs) == 0 {
		return ""
	}
	return slices.MinFunc(logs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}

// Folder returns the name of the folder of a service's logs, below nodespec.LogRoot.
func Folder(service string) string {
	folder, _ := split(nodespec.LogPath(service))
	_, name := split(folder)
	return name
}

// ServiceOf returns the service whose logs are in a folder below nodespec.LogRoot; the folder's own name if no operator
// makes it.
func ServiceOf(folder string) string {
	for _, service := range nodespec.ServiceNames() {
		if Folder(service) == folder {
			return service
		}
	}
	return folder
}

func split(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '\\')
	return path[:i], path[i+1:]
}
