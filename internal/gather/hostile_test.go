package gather

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/nodelogs"
)

// sizeSink is a sink that keeps the sizes of files.
type sizeSink struct {
	directorySink
	files map[string]int
}

func (s sizeSink) addFile(name string, content []byte) error {
	s.files[name] = len(content)
	return nil
}

func TestGather_HostileKubeletCannotFillArchive(t *testing.T) {
	for name, c := range map[string]struct {
		services, size int // of each log
		files          int // maximum number of collected files
	}{
		"by many logs":  {services: 5000, size: 10, files: maxLogs},
		"by long logs":  {services: 40, size: maxLogSize, files: maxLogBytes/maxLogSize + 1},
		"and as others": {services: 12, size: 1000, files: 12},
	} {
		t.Run(name, func(t *testing.T) {
			log := make([]byte, c.size)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch _, below, _ := strings.Cut(r.URL.Path, "/proxy/logs/"); {
				case below == "":
					for i := range c.services {
						fmt.Fprintf(w, `<a href="service-%d%%1b%%5b2J/">x</a>`+"\n", i)
					}
				case strings.HasSuffix(below, "/"):
					fmt.Fprint(w, `<a href="a.log">a.log</a>`)
				default:
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(log)-1, len(log)))
					w.WriteHeader(http.StatusPartialContent)
					_, _ = w.Write(log)
				}
			}))
			t.Cleanup(server.Close)
			files, err := nodelogs.Of(&rest.Config{Host: server.URL}, "win-1")
			if err != nil {
				t.Fatal(err)
			}
			collected := sizeSink{files: map[string]int{}}
			g := &gatherer{collection: &collection{sink: collected}, logs: func(string) (nodelogs.Files, error) { return files, nil }}
			written, served := g.serviceLogs(t.Context(), "hosts/win-1/", "win-1")
			if !served || len(written) != c.files || len(collected.files) != c.files {
				t.Errorf("%d files of %d services, want %d; served %t", len(written), c.services, c.files, served)
			}
			for _, file := range written {
				if strings.ContainsRune(file, '\x1b') || path.Dir(file) != "hosts/win-1/logs" {
					t.Errorf("a file is called %q", file)
				}
			}
			if gaps := g.listGaps(); (len(gaps) > 0) != (c.files < c.services) {
				t.Errorf("the gaps are %q", gaps)
			}
		})
	}
}

func TestRecordGap_PlainAndBounded(t *testing.T) {
	c := &collection{}
	c.recordGap("hosts/win-1/logs", fmt.Errorf("the kubelet says \x1b[2J\n%s", strings.Repeat("x", 1<<20)))
	if gap := c.listGaps()[0]; strings.ContainsAny(gap, "\x1b\n") || len(gap) > maxGap {
		t.Errorf("%d bytes: %.80q", len(gap), gap)
	}
}
