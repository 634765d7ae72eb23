package windows

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHTTPGet(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		case "/moved":
			http.Redirect(w, r, "/long", http.StatusFound)
		case "/never":
			close(asked)
			<-r.Context().Done()
		default:
			http.Error(w, "not ok", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	t.Run("an answer is its status and its text", func(t *testing.T) {
		status, body, err := httpGet(t.Context(), server.URL+"/healthz")
		if status != http.StatusServiceUnavailable || body != "not ok\n" || err != nil {
			t.Error(status, body, err)
		}
	})
	t.Run("of a long answer, the first KiB is read", func(t *testing.T) {
		status, body, err := httpGet(t.Context(), server.URL+"/long")
		if status != http.StatusOK || len(body) != 1024 || err != nil {
			t.Error(status, len(body), err)
		}
	})
	t.Run("a redirection is not followed", func(t *testing.T) {
		if status, _, err := httpGet(t.Context(), server.URL+"/moved"); status != http.StatusFound || err != nil {
			t.Error(status, err)
		}
	})
	t.Run("no proxy is asked", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
		if status, _, err := httpGet(t.Context(), server.URL); status != http.StatusServiceUnavailable || err != nil {
			t.Error(status, err)
		}
	})
	t.Run("the context ends the wait", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if _, _, err := httpGet(ctx, server.URL+"/never"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("the host's own certificate need not name the loopback address", func(t *testing.T) {
		secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
		defer secure.Close()
		if status, _, err := httpGet(t.Context(), secure.URL); status != http.StatusNoContent || err != nil {
			t.Error(status, err)
		}
	})
	t.Run("what is no address is an error", func(t *testing.T) {
		if _, _, err := httpGet(t.Context(), "http://[::1"); err == nil {
			t.Error("accepted")
		}
	})
}
