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

// maxEventsSize is the maximum size of a response with events to read, in bytes.
const maxEventsSize = 4 << 20

// noSource is the beginning of the kubelet's response for an unknown source of events, which the kubelet treats
// as a file name.
var noSource = []byte("options present and query resolved to log files")

// Events returns the last events of a source in the log Application, as Windows prints them for the kubelet. The
// kubelet runs Get-WinEvent for such a query (k8s.io/kubernetes, pkg/kubelet/kubelet_server_journal_windows.go), and
// serves no other log. The age of events cannot be restricted: the kubelet forwards a time without its zone.
func (f Files) Events(ctx context.Context, source string, most int) ([]byte, error) {
	query := url.Values{"query": {source}, "tailLines": {strconv.Itoa(most)}}
	response, err := f.get(ctx, "?"+query.Encode(), "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errorFromResponse(response)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxEventsSize))
	switch {
	case err != nil:
		return nil, err
	case bytes.HasPrefix(text, []byte("<")):
		return nil, errors.New("the kubelet does not support log queries")
	case bytes.Contains(text, noSource):
		return nil, fmt.Errorf("the node has no event source %s", source)
	}
	return text, nil
}
