// Package nodelogs reads the logs of a node's services through its kubelet.
package nodelogs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/redirect"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Files provides the files below C:\var\log on a node, as served by its kubelet: a file server of Go's net/http
// behind the proxy of the API server.
type Files struct {
	Client *http.Client
	// Base ends with the directory of the logs.
	Base *url.URL
}

// Limits of the responses of a kubelet, in bytes. The kubelet is not trusted: an attacker may control the node.
const (
	maxPiece   = 4 << 20
	maxTail    = 16 << 20
	maxListing = 1 << 20
	maxName    = 256
)

// Of returns the log files of a node. The kubelet serves these files at /logs/: k8s.io/kubernetes/pkg/kubelet.
// A redirect is an error.
func Of(config *rest.Config, node string) (Files, error) {
	config = rest.CopyConfig(config)
	redirect.Refuse(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Files{}, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Files{}, err
	}
	base := server.JoinPath("api", "v1", "nodes", url.PathEscape(node), "proxy", "logs")
	base.Path += "/"
	return Files{Client: client, Base: base}, nil
}

// From reads a part of a file from an offset on. If the file is not longer, the part is empty.
func (f Files) From(ctx context.Context, path string, offset int64) (logprinter.Part, error) {
	part, err := f.read(ctx, path, fmt.Sprintf("bytes=%d-%d", offset, offset+maxPiece-1), maxPiece)
	if err == nil && len(part.Body) > 0 && part.From != offset {
		return logprinter.Part{}, fmt.Errorf("%w: requested from byte %d on, received from byte %d on", errOtherPart, offset, part.From)
	}
	return part, err
}

// Last reads at most the given number of bytes at the end of a file, limited to the maximum in memory.
func (f Files) Last(ctx context.Context, path string, bytes int64) (logprinter.Part, error) {
	bytes = min(bytes, maxTail)
	return f.read(ctx, path, fmt.Sprintf("bytes=-%d", bytes), bytes)
}

// errOtherPart means that a kubelet returned a part of a file other than the requested one.
var errOtherPart = errors.New("the kubelet did not send the requested part of the file")

// read reads the requested range of a file, limited to a number of bytes.
func (f Files) read(ctx context.Context, path, requested string, limit int64) (logprinter.Part, error) {
	response, err := f.get(ctx, path, requested)
	if err != nil {
		return logprinter.Part{}, err
	}
	defer response.Body.Close()
	modified, _ := http.ParseTime(response.Header.Get("Last-Modified")) // sent by a file server
	switch response.StatusCode {
	case http.StatusOK: // an empty file, or a server without ranges and a file of any size
		body, err := readBounded(response.Body, limit)
		return logprinter.Part{Body: body, Size: int64(len(body)), Modified: modified}, err
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
	default:
		return logprinter.Part{}, errorFromResponse(response)
	}
	from, size, err := contentRange(response.Header.Get("Content-Range"))
	if err != nil || response.StatusCode != http.StatusPartialContent {
		return logprinter.Part{From: size, Size: size}, err
	}
	body, err := readBounded(response.Body, limit)
	return logprinter.Part{Body: body, From: from, Size: size, Modified: modified}, err
}

// readBounded reads a response of a kubelet. A response longer than the limit is an error.
func readBounded(body io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(content)) > limit {
		return nil, fmt.Errorf("the kubelet sent more than the maximum of %d bytes", limit)
	}
	return content, err
}

// ranges matches a Content-Range: RFC 9110, section 14.4. For an empty file, Go's file server ends the range with -1.
var ranges = regexp.MustCompile(`^bytes (?:(\d+)-(?:\d+|-1)|\*)/(\d+)$`)

func contentRange(header string) (from, size int64, err error) {
	match := ranges.FindStringSubmatch(header)
	if match == nil {
		return 0, 0, fmt.Errorf("the kubelet returned the invalid range %q", sanitize.Plain(header, maxName))
	}
	if match[1] != "" {
		if from, err = strconv.ParseInt(match[1], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	size, err = strconv.ParseInt(match[2], 10, 64)
	return from, size, err
}

// links matches the entries of a directory in the page of the file server.
var links = regexp.MustCompile(`<a href="([^"]*)">`)

// List returns the names in a directory; names of subdirectories end with a slash.
func (f Files) List(ctx context.Context, folder string) ([]string, error) {
	response, err := f.get(ctx, folder, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errorFromResponse(response)
	}
	page, err := readBounded(response.Body, maxListing)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, link := range links.FindAllStringSubmatch(string(page), -1) {
		name, err := url.PathUnescape(link[1])
		if err != nil {
			return nil, fmt.Errorf("the kubelet lists %q, which is not a file name", sanitize.Plain(link[1], maxName))
		}
		names = append(names, name)
	}
	return names, nil
}

func (f Files) get(ctx context.Context, path, bytes string) (*http.Response, error) {
	// JoinPath would remove the slash at the end of a directory, and the response would be a redirect.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Base.String()+path, nil)
	if err != nil {
		return nil, err
	}
	if bytes != "" {
		request.Header.Set("Range", bytes)
	}
	return f.Client.Do(request)
}

// maxErrorBody is the maximum size of an error response to read, and maxError the maximum size to print, in bytes.
const (
	maxErrorBody = 4096
	maxError     = 1024
)

// StatusError is an error response of the API server, or of the kubelet behind it.
type StatusError struct {
	Code int // of HTTP
	text string
}

func (e *StatusError) Error() string { return e.text }

// errorFromResponse returns the error for a response.
func errorFromResponse(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return err
	}
	message := string(body)
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		message = status.Message
	}
	message = sanitize.Plain(message, maxError)
	if response.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", logprinter.ErrNotFound, message)
	}
	return &StatusError{Code: response.StatusCode, text: sanitize.Plain(response.Status, maxName) + ": " + message}
}

// Current returns the current log of a service; the names of rotated logs also contain a time. If the service has no
// log, the error is logprinter.ErrNotFound.
func (f Files) Current(ctx context.Context, service string) (path string, err error) {
	folder := url.PathEscape(logprinter.DirectoryName(service)) + "/"
	names, err := f.List(ctx, folder)
	if err != nil {
		return "", err
	}
	name := logprinter.CurrentLog(service, names)
	if name == "" {
		return "", fmt.Errorf("%w: the log directory contains only %s", logprinter.ErrNotFound, sanitize.Plain(strings.Join(names, ", "), maxError))
	}
	return folder + url.PathEscape(name), nil
}

// Services returns the services with a log directory.
func (f Files) Services(ctx context.Context) ([]string, error) {
	names, err := f.List(ctx, "")
	if err != nil {
		return nil, err
	}
	var services []string
	for _, name := range names {
		if service, isFolder := strings.CutSuffix(name, "/"); isFolder {
			services = append(services, logprinter.ServiceOf(service))
		}
	}
	return services, nil
}
