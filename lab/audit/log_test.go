package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	add := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	log := Open(path)
	next := func(want int) []Event {
		t.Helper()
		events, err := log.Next()
		if err != nil || len(events) != want {
			t.Fatalf("%d events, error %v, want %d", len(events), err, want)
		}
		return events
	}
	if _, err := log.Next(); err == nil {
		t.Error("a log that is not there is no error")
	}
	const line = `{"verb":"patch","user":{"username":"somebody"},"requestURI":"/api/v1/nodes/a/status","objectRef":` +
		`{"resource":"nodes","subresource":"status","name":"a"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
	add(line)
	t.Run("an event says who did what to which object", func(t *testing.T) {
		event := next(1)[0]
		if event.Verb != "patch" || event.Resource() != "nodes/status" || event.Object.Name != "a" || event.User.Username != "somebody" || event.IsForbidden() {
			t.Errorf("got %+v", event)
		}
	})
	t.Run("a line that is half written is an event when it is whole", func(t *testing.T) {
		add(line[:40])
		next(0)
		add(line[40:])
		next(1)
	})
	t.Run("what RBAC or a check after it refused was forbidden", func(t *testing.T) {
		add(`{"annotations":{"authorization.k8s.io/decision":"forbid"}}` + "\n" + `{"responseStatus":{"code":403}}` + "\n")
		for _, event := range next(2) {
			if !event.IsForbidden() {
				t.Errorf("%+v", event)
			}
		}
	})
	t.Run("who opens it at its end sees what comes then, and a half written line as a whole", func(t *testing.T) {
		add(line + line[:40])
		log, err := OpenAtEnd(path)
		if err != nil {
			t.Fatal(err)
		}
		add(line[40:])
		if events, err := log.Next(); err != nil || len(events) != 1 || events[0].Verb != "patch" {
			t.Errorf("%+v, error %v", events, err)
		}
		if _, err := OpenAtEnd(path + "-of-nobody"); err == nil {
			t.Error("a log that is not there is no error")
		}
	})
	t.Run("a log that the API server has renamed is read to its end before the one that it began", func(t *testing.T) {
		next(2) // of the previous test
		add(`{"verb":"get"}` + "\n")
		if err := os.Rename(path, filepath.Join(filepath.Dir(path), "audit-2026-01-01T00-00-00.000.log")); err != nil {
			t.Fatal(err)
		}
		add(`{"verb":"list"}` + "\n")
		if events := next(2); events[0].Verb != "get" || events[1].Verb != "list" {
			t.Errorf("%+v", events)
		}
		add(`{"verb":"watch"}` + "\n")
		next(1)
	})
	t.Run("a log that was replaced, and is gone, is an error and no silence", func(t *testing.T) {
		lost := *log
		other := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(other, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		lost.path = other
		if _, err := lost.Next(); err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("a log that was truncated is an error and no silence", func(t *testing.T) {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Next(); err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("an invalid log is an error", func(t *testing.T) {
		if _, err := Open(path).parseLines([]byte("x\n")); err == nil {
			t.Error("it is not")
		}
	})
}
