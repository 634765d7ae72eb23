package logs

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
)

// files are the files below C:\var\log on a node, as its kubelet serves them: a file server of Go's net/http behind the
// proxy of the API server.
type files struct {
	client *http.Client
	// base ends with the folder of the logs.
	base *url.URL
}

// errNotThere is the error for a file or folder that is not there.
var errNotThere = errors.New("not there")

// part is the end of a file.
type part struct {
	body []byte
	// from and size are in bytes: where the part begins, and how large the file was.
	from, size int64
}

// from reads a file from an offset on. A file that is not longer gives an empty part.
func (f files) from(ctx context.Context, path string, offset int64) (part, error) {
	return f.read(ctx, path, fmt.Sprintf("bytes=%d-", offset))
}

// last reads at most so many bytes at the end of a file.
func (f files) last(ctx context.Context, path string, bytes int64) (part, error) {
	return f.read(ctx, path, fmt.Sprintf("bytes=-%d", bytes))
}

func (f files) read(ctx context.Context, path, bytes string) (part, error) {
	response, err := f.get(ctx, path, bytes)
	if err != nil {
		return part{}, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK: // a server without ranges, or an empty file
		body, err := io.ReadAll(response.Body)
		return part{body: body, size: int64(len(body))}, err
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
	default:
		return part{}, failure(response)
	}
	from, size, err := contentRange(response.Header.Get("Content-Range"))
	if err != nil || response.StatusCode != http.StatusPartialContent {
		return part{from: size, size: size}, err
	}
	body, err := io.ReadAll(response.Body)
	return part{body: body, from: from, size: size}, err
}

// ranges is the form of a Content-Range: RFC 9110, section 14.4. Go's file server ends that of an empty file with -1.
var ranges = regexp.MustCompile(`^bytes (?:(\d+)-(?:\d+|-1)|\*)/(\d+)$`)

func contentRange(header string) (from, size int64, err error) {
	match := ranges.FindStringSubmatch(header)
	if match == nil {
		return 0, 0, fmt.Errorf("the kubelet answered with the range %q", header)
	}
	if match[1] != "" {
		if from, err = strconv.ParseInt(match[1], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	size, err = strconv.ParseInt(match[2], 10, 64)
	return from, size, err
}

// links are the entries of a folder, in the page that the file server makes of it.
var links = regexp.MustCompile(`<a href="([^"]*)">`)

// list returns the names in a folder; those of folders end with a slash.
func (f files) list(ctx context.Context, folder string) ([]string, error) {
	response, err := f.get(ctx, folder, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, failure(response)
	}
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, link := range links.FindAllStringSubmatch(string(page), -1) {
		name, err := url.PathUnescape(link[1])
		if err != nil {
			return nil, fmt.Errorf("the kubelet lists %q: %w", link[1], err)
		}
		names = append(names, name)
	}
	return names, nil
}

func (f files) get(ctx context.Context, path, bytes string) (*http.Response, error) {
	// Not JoinPath for all of it: a folder's slash at the end must stay, or it is a redirect.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base.String()+path, nil)
	if err != nil {
		return nil, err
	}
	if bytes != "" {
		request.Header.Set("Range", bytes)
	}
	return f.client.Do(request)
}

// mostOfAnError is how much of an answer is read that is an error.
const mostOfAnError = 4096

// failure is the error that an answer stands for.
func failure(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, mostOfAnError))
	if err != nil {
		return err
	}
	message := strings.TrimSpace(string(body))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		message = status.Message
	}
	if response.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", errNotThere, message)
	}
	return fmt.Errorf("%s: %s", response.Status, message)
}
