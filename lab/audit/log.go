// Package audit reads the audit log of the lab's API server, with users, requests and decisions. It compares
// the requests with the rules of RBAC.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Event is a completed request.
type Event struct {
	// ID is the ID of the request, which the response contains in the header Audit-Id.
	ID   string `json:"auditID"`
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	// URI is the path, for non-resource requests.
	URI    string `json:"requestURI"`
	Object struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// Resource returns the resource with its subresource, in the form of RBAC rules.
func (e Event) Resource() string {
	if e.Object.Subresource == "" {
		return e.Object.Resource
	}
	return e.Object.Resource + "/" + e.Object.Subresource
}

// IsForbidden reports whether RBAC denied the request, or a later check found a missing right.
func (e Event) IsForbidden() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid" || e.Response.Code == 403
}

// maxLineLength is the maximum length of a line: the log contains no request bodies.
const maxLineLength = 1 << 20

// Log is the file that the API server appends to. The zero offset is its beginning. When the file is full, the
// API server renames the file and starts another one: both are read.
type Log struct {
	path   string
	only   []byte      // lines without this text are skipped, unless it is empty
	file   os.FileInfo // the file of the offset; nil before the first read
	offset int64
	rest   []byte // the beginning of an incomplete line
}

// Open reads the log in a file from the beginning. The file need not exist yet.
func Open(path string) *Log { return &Log{path: path} }

// OpenAtEnd reads new entries of the log in a file.
func OpenAtEnd(path string) (*Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	// The last line may be incomplete: it is read again completely.
	last := min(info.Size(), maxLineLength)
	end := make([]byte, last)
	if _, err := file.ReadAt(end, info.Size()-last); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return &Log{path: path, file: info, offset: info.Size() - last + int64(bytes.LastIndexByte(end, '\n')) + 1}, nil
}

// Next returns the events since the last call.
func (l *Log) Next() ([]Event, error) {
	var events []Event
	paths, err := l.unreadFiles()
	if err != nil {
		return nil, err
	}
	for i, path := range paths {
		more, err := l.read(path, i == 0)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, nil
}

// unreadFiles returns the files that may contain unread data, oldest first: more than one if the first was renamed.
func (l *Log) unreadFiles() ([]string, error) {
	present, err := os.Stat(l.path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	if l.file == nil || os.SameFile(l.file, present) {
		return []string{l.path}, nil
	}
	extension := filepath.Ext(l.path)
	renamed, err := filepath.Glob(strings.TrimSuffix(l.path, extension) + "-*" + extension)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	slices.Sort(renamed) // the names contain the time
	for i, path := range renamed {
		if info, err := os.Stat(path); err == nil && os.SameFile(l.file, info) {
			return append(renamed[i:], l.path), nil
		}
	}
	return nil, fmt.Errorf("the audit log %s was replaced, and what it held before is not beside it: requests are missing", l.path)
}

// read returns the unread events of a file: of the same file as before, or of the next one.
func (l *Log) read(path string, same bool) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	switch {
	case same && l.file != nil && !os.SameFile(l.file, info):
		return l.Next() // the file has just been renamed
	case !same:
		l.offset = 0
	}
	l.file = info
	if info.Size() < l.offset {
		return nil, fmt.Errorf("the audit log %s was truncated: requests are missing in it", path)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, l.offset, info.Size()-l.offset))
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	l.offset += int64(len(data))
	return l.parseLines(data)
}

// parseLines parses the complete lines and keeps the rest for the next call.
func (l *Log) parseLines(data []byte) ([]Event, error) {
	var events []Event
	l.rest = append(l.rest, data...)
	for {
		line, rest, complete := bytes.Cut(l.rest, []byte("\n"))
		if !complete {
			return events, nil
		}
		l.rest = rest
		if !bytes.Contains(line, l.only) {
			continue
		}
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log: a line is no JSON: %w", err)
		}
		events = append(events, event)
	}
}

// ServiceAccount returns the user name of a ServiceAccount.
func ServiceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}
