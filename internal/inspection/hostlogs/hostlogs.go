// Package hostlogs reads the logs of a node's services and Windows' event log directly from the host, over SSH, for
// hosts without a kubelet that serves them. The logs of services need no agent there. The package reads only the
// directories of known services, and does not follow symbolic links that exist at the time of the read.
package hostlogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Host is a connection to a host.
type Host interface {
	List(ctx context.Context, folder string) ([]fs.FileInfo, error)
	Read(ctx context.Context, path string, offset, most int64) (remote.Excerpt, error)
}

// Files provides the logs on a host.
type Files struct{ Host Host }

const (
	// chunk is the maximum size of one read, in bytes.
	chunk = 1 << 20
	// maxCollectedLog is the maximum size of a log's end in a support case, in bytes: the logs of several hosts are
	// in memory at once.
	maxCollectedLog = 512 << 10
	// maxTailSize is the maximum size of a log's end in memory, in bytes.
	maxTailSize = 16 << 20
)

// Services returns the services with a log directory.
func (f Files) Services(ctx context.Context) ([]string, error) {
	entries, err := f.Host.List(ctx, nodespec.LogRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the operator has not created a folder for logs on this host yet (%w)", err)
	}
	if err != nil {
		return nil, err
	}
	var services []string
	for _, name := range nodespec.ServiceNames() {
		if slices.ContainsFunc(entries, func(entry fs.FileInfo) bool {
			return entry.IsDir() && strings.EqualFold(entry.Name(), logprinter.DirectoryName(name))
		}) {
			services = append(services, name)
		}
	}
	slices.Sort(services)
	return services, nil
}

// Current returns the current log file of a service.
func (f Files) Current(ctx context.Context, service string) (path string, err error) {
	known := nodespec.ServiceNames()
	if !slices.Contains(known, service) {
		return "", fmt.Errorf("%w: a node has no such service; the services are %s", logprinter.ErrNotFound, strings.Join(known, ", "))
	}
	folder := nodespec.LogDirectory(service)
	entries, err := f.Host.List(ctx, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: the host has no folder %s", logprinter.ErrNotFound, folder)
	}
	if err != nil {
		return "", err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	name := logprinter.CurrentLog(service, names)
	if name == "" {
		return "", fmt.Errorf("%w: no log is in folder %s", logprinter.ErrNotFound, folder)
	}
	return folder + `\` + name, nil
}

// From reads a log from an offset. After a restart of the host, the connection is lost and not restored.
func (f Files) From(ctx context.Context, path string, offset int64) (logprinter.Part, error) {
	read, err := f.Host.Read(ctx, path, offset, chunk)
	var lost *remote.Error
	if errors.As(err, &lost) && lost.Reason == remote.ReasonConnectionLost {
		err = fmt.Errorf("host %s: %s, so %w. Run the command again when the host responds", lost.Host, lost.Message, logprinter.ErrGone)
	}
	return logprinter.Part{Body: read.Body, From: read.Offset, Size: read.Size, Modified: read.Modified}, err
}

// Last reads the end of a log, limited to the maximum in memory.
func (f Files) Last(ctx context.Context, path string, bytes int64) (logprinter.Part, error) {
	bytes = min(bytes, maxTailSize)
	read, err := f.Host.Read(ctx, path, -1, min(bytes, chunk))
	if err != nil || bytes <= chunk {
		return logprinter.Part{Body: read.Body, From: read.Offset, Size: read.Size, Modified: read.Modified}, err
	}
	part := logprinter.Part{From: max(0, read.Size-bytes), Size: read.Size, Modified: read.Modified}
	for part.From+int64(len(part.Body)) < part.Size {
		read, err := f.Host.Read(ctx, path, part.From+int64(len(part.Body)), chunk)
		if err != nil {
			return logprinter.Part{}, err
		}
		if len(read.Body) == 0 {
			break // the log was truncated in the meantime
		}
		part.Body = append(part.Body, read.Body...)
	}
	return part, nil
}

// Ends returns the end of the log of each service with a log, by service. The error contains the logs that
// could not be read.
func Ends(ctx context.Context, f Files) (map[string][]byte, error) {
	services, err := f.Services(ctx)
	if err != nil {
		return nil, err
	}
	ends, errs := map[string][]byte{}, []error(nil)
	for _, service := range services {
		path, err := f.Current(ctx, service)
		if errors.Is(err, logprinter.ErrNotFound) {
			continue
		}
		var part logprinter.Part
		if err == nil {
			part, err = f.Last(ctx, path, maxCollectedLog)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ends[service] = part.Body
	}
	return ends, errors.Join(errs...)
}
