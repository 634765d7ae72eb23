package nodelogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// mostOfEvents is how much of an answer with events is read, in bytes.
const mostOfEvents = 4 << 20

// noSource begins the kubelet's words for a name that Windows knows no source of events by, so that it would be a file's.
var noSource = []byte("options present and query resolved to log files")

// Events returns the last events of a source in the log Application, as Windows prints them for the kubelet: it runs
// Get-WinEvent for such a query (k8s.io/kubernetes, pkg/kubelet/kubelet_server_journal_windows.go). It has no other log. Their
// age is not asked for: the kubelet hands on a time without its zone.
func (f Files) Events(ctx context.Context, source string, most int) ([]byte, error) {
	query := url.Values{"query": {source}, "tailLines": {strconv.Itoa(most)}}
	response, err := f.get(ctx, "?"+query.Encode(), "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, failure(response)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, mostOfEvents))
	switch {
	case err != nil:
		return nil, err
	case bytes.HasPrefix(text, []byte("<")):
		return nil, errors.New("it does not know such queries")
	case bytes.Contains(text, noSource):
		return nil, fmt.Errorf("no source of events on the node is called %s", source)
	}
	return text, nil
}
