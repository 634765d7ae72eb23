package nodelogs

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// newEventFiles returns the log files of a kubelet with the given response, and the query of the last request.
func newEventFiles(t *testing.T, status int, answer string) (Files, *url.Values) {
	t.Helper()
	query := &url.Values{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/logs/" {
			http.Error(w, "path not allowed in query mode", http.StatusNotAcceptable)
			return
		}
		*query = r.URL.Query()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/logs/")
	if err != nil {
		t.Fatal(err)
	}
	return Files{Client: server.Client(), Base: base}, query
}

func TestEvents_QueriesSourceWithoutSinceTime(t *testing.T) {
	files, query := newEventFiles(t, http.StatusOK, "\n   ProviderName: windows_exporter\n")
	got, err := files.Events(t.Context(), "windows_exporter", 5)
	if err != nil || string(got) != "\n   ProviderName: windows_exporter\n" {
		t.Errorf("%q, %v", got, err)
	}
	// The query must not contain sinceTime: the kubelet would forward a UTC time as a time of the host's zone.
	if got := query.Encode(); got != "query=windows_exporter&tailLines=5" {
		t.Errorf("it is asked %s", got)
	}
}

func TestEvents_MissingEventsAreError(t *testing.T) {
	for name, c := range map[string]struct {
		status       int
		answer, want string
	}{
		"it lists files: queries are turned off": {http.StatusOK, "<!doctype html>\n<pre>\n<a href=\"kubelet/\">kubelet/</a>\n", "the kubelet does not support log queries"},
		"Windows has no such source": {http.StatusOK, "\noptions present and query resolved to log files for [kubelet]\ntry without specifying options\n",
			"the node has no event source kubelet"},
		"it refuses": {http.StatusForbidden, "Forbidden", "403 Forbidden"},
	} {
		files, _ := newEventFiles(t, c.status, c.answer)
		if got, err := files.Events(t.Context(), "kubelet", 5); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
