package faultproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// server is a fake API server with scripted watch events and a counter for changes.
type server struct {
	*httptest.Server
	eventLines chan string
	changes    atomic.Int32
}

func newServer(t *testing.T) (*server, *Proxy) {
	t.Helper()
	s := &server{eventLines: make(chan string)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.changes.Add(1)
		}
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, "done"+r.URL.RawQuery)
			return
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case text := <-s.eventLines:
				fmt.Fprintln(w, text)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	p, err := Start(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return s, p
}

func (p *Proxy) sendRequest(t *testing.T, method, path string) (code int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.Through(&rest.Config{}).Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// startWatch returns the lines that a watch receives, until the test ends.
func (p *Proxy) startWatch(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Through(&rest.Config{}).Host+path+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // who reads the lines closes it
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	go func() {
		defer close(lines)
		defer response.Body.Close()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

const (
	nodes = "/api/v1/nodes"
	csrs  = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

func TestProxy_FaultsAffectSelectedRequestsOnly(t *testing.T) {
	s, p := newServer(t)
	t.Run("without a fault everything passes", func(t *testing.T) {
		if code, body, err := p.sendRequest(t, http.MethodPut, nodes+"/a"); code != 200 || body != "done" || err != nil {
			t.Errorf("got %d %q, %v", code, body, err)
		}
	})
	t.Run("failing requests are not passed on, and say so as the API server does", func(t *testing.T) {
		before := s.changes.Load()
		defer p.Add("nodes", Fault{Fail: true})()
		code, body, err := p.sendRequest(t, http.MethodPut, nodes+"/a/status")
		var status metav1.Status
		if code != 500 || err != nil || json.Unmarshal([]byte(body), &status) != nil || status.Reason != metav1.StatusReasonInternalError {
			t.Errorf("got %d %q, %v", code, body, err)
		}
		if s.changes.Load() != before {
			t.Error("it was passed on")
		}
		if code, _, err := p.sendRequest(t, http.MethodPut, csrs+"/a"); code != 200 || err != nil {
			t.Errorf("another resource is spoiled as well: %d, %v", code, err)
		}
	})
	t.Run("a conflict is for changes only, and each second is one", func(t *testing.T) {
		defer p.Add("nodes", Fault{Conflict: true, Every: 2})()
		var codes []string
		for range 4 {
			code, _, _ := p.sendRequest(t, http.MethodPatch, nodes+"/a")
			codes = append(codes, fmt.Sprint(code))
		}
		if got := strings.Join(codes, " "); got != "200 409 200 409" {
			t.Error(got)
		}
		if code, _, _ := p.sendRequest(t, http.MethodGet, nodes+"/a"); code != 200 {
			t.Errorf("a read got %d", code)
		}
	})
	t.Run("a lost answer is one to a change that was done", func(t *testing.T) {
		before := s.changes.Load()
		defer p.Add("nodes", Fault{LoseAnswers: true})()
		if code, _, err := p.sendRequest(t, http.MethodPatch, nodes+"/a"); err == nil {
			t.Errorf("it was answered with %d", code)
		}
		if s.changes.Load() != before+1 {
			t.Error("the change was not done")
		}
	})
	t.Run("lists from a cache are as they were", func(t *testing.T) {
		defer p.Add("nodes", Fault{ListsAt: "7"})()
		for path, want := range map[string]string{
			nodes + "?resourceVersion=0": "doneresourceVersion=7&resourceVersionMatch=Exact",
			nodes:                        "done", nodes + "/a": "done", nodes + "?resourceVersion=9": "doneresourceVersion=9",
			csrs + "?resourceVersion=0": "doneresourceVersion=0",
		} {
			if code, body, err := p.sendRequest(t, http.MethodGet, path); code != 200 || body != want || err != nil {
				t.Errorf("%s: %d %q, %v", path, code, body, err)
			}
		}
		if code, _, _ := p.sendRequest(t, http.MethodGet, nodes+"?watch=true&sendInitialEvents=true"); code != 422 {
			t.Errorf("a watch that begins with a list got %d", code)
		}
	})
	t.Run("a refusal breaks requests", func(t *testing.T) {
		remove := p.Add("", Fault{Refuse: true})
		if code, _, err := p.sendRequest(t, http.MethodGet, nodes); err == nil {
			t.Errorf("it was answered with %d", code)
		}
		remove()
		if code, _, err := p.sendRequest(t, http.MethodGet, nodes); code != 200 || err != nil {
			t.Errorf("after it: %d, %v", code, err)
		}
	})
}

func TestProxy_HoldsAndDelaysWatches(t *testing.T) {
	s, p := newServer(t)
	lines := p.startWatch(t, nodes)
	t.Run("a held watch tells everything afterward", func(t *testing.T) {
		remove := p.Add("nodes", Fault{Hold: true})
		s.eventLines <- "first"
		s.eventLines <- "second"
		select {
		case line := <-lines:
			t.Errorf("it told %q", line)
		case <-time.After(100 * time.Millisecond): // the absence of a line only shows after some time
		}
		remove()
		if first, second := <-lines, <-lines; first != "first" || second != "second" {
			t.Errorf("it told %q, %q", first, second)
		}
	})
	t.Run("a delayed watch tells later, and another resource's does not", func(t *testing.T) {
		defer p.Add(Resource(csrs), Fault{Delay: time.Hour})()
		defer p.Add("nodes", Fault{Delay: 50 * time.Millisecond})()
		start := time.Now()
		s.eventLines <- "third"
		if line := <-lines; line != "third" || time.Since(start) < 50*time.Millisecond {
			t.Errorf("it told %q after %s", line, time.Since(start))
		}
	})
	t.Run("a broken watch ends", func(t *testing.T) {
		p.BreakWatches("nodes")
		if line, more := <-lines; more {
			t.Errorf("it told %q", line)
		}
	})
}

func TestResource(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/nodes": "nodes", "/api/v1/nodes/a/status": "nodes", "/api/v1/namespaces/x/pods/y/eviction": "pods",
		"/api/v1/namespaces/x": "namespaces", "/api/v1/namespaces": "namespaces", csrs + "/a/approval": "certificatesigningrequests",
		"/apis/windowsmachineconfig.openshift.io/v1alpha1/namespaces/x/windowsinstances/y/status": "windowsinstances",
		"/healthz": "", "/apis": "", "/api/v1": "",
	} {
		if got := Resource(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestProxy_WatchAnsweredAfterRefusalEnds(t *testing.T) {
	_, p := newServer(t)
	remove := p.Add("nodes", Fault{Refuse: true})
	for resource, ends := range map[string]bool{"nodes": true, "pods": false} {
		source, writer := io.Pipe()
		body := p.newWatchBody(source, resource) // requested before the refusal
		go fmt.Fprint(writer, "x")
		data := make([]byte, 1)
		if n, err := body.Read(data); (err != nil && n == 0) != ends {
			t.Errorf("of %s it told %q, error %v", resource, data[:n], err)
		}
		_ = body.Close()
	}
	remove()
}
