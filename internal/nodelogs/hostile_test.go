package nodelogs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// newProxiedFiles returns the log files of a node behind a fake proxy of the API server, which forwards the kubelet's
// responses.
func newProxiedFiles(t *testing.T, kubelet http.HandlerFunc) Files {
	t.Helper()
	server := httptest.NewServer(http.StripPrefix("/api/v1/nodes/win-1/proxy/logs", kubelet))
	t.Cleanup(server.Close)
	files, err := Of(&rest.Config{Host: server.URL, BearerToken: "sha256~of-a-cluster-admin"}, "win-1")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// writeEndless writes until the client disconnects, and counts the written bytes.
func writeEndless(w io.Writer, written *int) {
	block := []byte(strings.Repeat("x", 64<<10))
	for *written < 64<<20 {
		n, err := w.Write(block)
		if *written += n; err != nil {
			return
		}
	}
}

func TestFiles_ReadsNoMoreThanRequested(t *testing.T) {
	const buffers = 16 << 20 // maximum of the connection
	for name, kubelet := range map[string]func(http.ResponseWriter, *http.Request, *int){
		"it sends all of a file": func(w http.ResponseWriter, _ *http.Request, written *int) { writeEndless(w, written) },
		"it sends a longer part": func(w http.ResponseWriter, _ *http.Request, written *int) {
			w.Header().Set("Content-Range", "bytes 0-99/100")
			w.WriteHeader(http.StatusPartialContent)
			writeEndless(w, written)
		},
		"it sends little that is compressed": func(w http.ResponseWriter, _ *http.Request, written *int) {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			writeEndless(compressed, written)
			_ = compressed.Close()
		},
		"its error has no end": func(w http.ResponseWriter, _ *http.Request, written *int) {
			w.WriteHeader(http.StatusBadGateway)
			writeEndless(w, written)
		},
	} {
		for what, read := range map[string]func(Files) (int, error){
			"a part": func(f Files) (int, error) {
				part, err := f.From(t.Context(), "kubelet/kubelet.log", 0)
				return len(part.Body), err
			},
			"an end": func(f Files) (int, error) {
				part, err := f.Last(t.Context(), "kubelet/kubelet.log", 1<<20)
				return len(part.Body), err
			},
			"an end that is as long as memory": func(f Files) (int, error) {
				part, err := f.Last(t.Context(), "kubelet/kubelet.log", 1<<50)
				return len(part.Body), err
			},
			"the services": func(f Files) (int, error) {
				services, err := f.Services(t.Context())
				return len(strings.Join(services, "")), err
			},
		} {
			t.Run(name+", for "+what, func(t *testing.T) {
				written := 0
				files := newProxiedFiles(t, func(w http.ResponseWriter, r *http.Request) { kubelet(w, r, &written) })
				size, err := read(files)
				compressed := strings.Contains(name, "compressed") && what != "the services" // parts are not expanded
				if (err == nil) != compressed || err != nil && len(err.Error()) > 4096 || size > maxTail {
					t.Errorf("%d bytes are kept, and the error is %v", size, err)
				}
				files.Client.CloseIdleConnections()
				if !strings.Contains(name, "compressed") && written > maxTail+buffers {
					t.Errorf("%d MiB were read", written>>20)
				}
			})
		}
	}
}

func TestFiles_RejectsUnrequestedRange(t *testing.T) {
	for name, c := range map[string]struct {
		kubelet http.HandlerFunc
		want    string
	}{
		"all of the file each time": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "one\ntwo\n") },
			"requested from byte 8 on, received from byte 0 on"},
		"its beginning again": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-7/16")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "one\ntwo\n")
		}, "requested from byte 8 on, received from byte 0 on"},
		"an invalid range": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 99999999999999999999-1/2")
			w.WriteHeader(http.StatusPartialContent)
		}, "value out of range"},
	} {
		if part, err := newProxiedFiles(t, c.kubelet).From(t.Context(), "kubelet/kubelet.log", 8); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, part.Body, err)
		}
	}
	empty := newProxiedFiles(t, func(http.ResponseWriter, *http.Request) {})
	if part, err := empty.From(t.Context(), "kubelet/kubelet.log", 8); err != nil || part.Size != 0 {
		t.Errorf("a log that is empty now: %+v, %v", part, err)
	}
}

func TestFiles_ReadsLongLogInPieces(t *testing.T) {
	content := bytes.Repeat([]byte("line\n"), maxPiece/2)
	files := newProxiedFiles(t, func(w http.ResponseWriter, r *http.Request) {
		from, to := 0, 0
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			t.Errorf("the range is %q: %v", r.Header.Get("Range"), err)
		}
		to = min(to, len(content)-1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(content[from : to+1])
	})
	var read []byte
	for len(read) < len(content) {
		part, err := files.From(t.Context(), "kubelet/kubelet.log", int64(len(read)))
		if err != nil || len(part.Body) == 0 || len(part.Body) > maxPiece {
			t.Fatalf("%d bytes, %v", len(part.Body), err)
		}
		read = append(read, part.Body...)
	}
	if !bytes.Equal(read, content) {
		t.Error("the log is another")
	}
}

func TestFiles_RedirectIsError(t *testing.T) {
	var received []string
	foreignServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = append(received, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"kind":"SecretList"}`)
	}))
	t.Cleanup(foreignServer.Close)
	for _, location := range []string{foreignServer.URL, "../../../../../secrets"} {
		files := newProxiedFiles(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/kubelet") {
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"SecretList"}`)
		})
		part, err := files.Last(t.Context(), "kubelet/kubelet.log", 1<<20)
		if err == nil || !strings.Contains(err.Error(), "a redirect to") || len(part.Body) > 0 || len(received) > 0 {
			t.Errorf("%s: the log is %q, %v; the host has received %q", location, part.Body, err, received)
		}
	}
}

func TestFiles_ErrorsHaveNoControlCharacters(t *testing.T) {
	const escape = "\x1b]52;c;cm0gLXJmIC8K\x07"
	files := newProxiedFiles(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			link := url.URL{Path: "./" + escape}
			fmt.Fprintf(w, "<a href=%q>x</a>\n<a href=\"%%zz%s\">x</a>\n", strings.TrimPrefix(link.String(), "./"), escape)
			return
		}
		http.Error(w, "no "+escape+"\nnext line", http.StatusBadGateway)
	})
	_, listed := files.Services(t.Context())
	_, read := files.Last(t.Context(), "kubelet/kubelet.log", 10)
	for what, err := range map[string]error{"a list": listed, "a log": read} {
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\n") {
			t.Errorf("the error for %s is %q", what, err)
		}
	}
}
