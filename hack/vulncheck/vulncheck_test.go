package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const databaseIndex = `{"modified":"2026-01-02T03:04:05Z"}`

// answering returns a database that answers so.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index/db.json" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// silentServer returns one that takes a connection and says nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(done); server.Close() })
	return server.URL
}

// ownDatabase returns the one of these tests, as a URL.
func ownDatabase(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/database")
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

func TestWhichDatabaseIsAsked(t *testing.T) {
	good := answering(t, http.StatusOK, databaseIndex)
	for name, c := range map[string]struct{ named, public, want string }{
		"the one that is named":               {good, "https://not.asked.invalid", good},
		"one that is named and lies in files": {ownDatabase(t), "https://not.asked.invalid", ownDatabase(t)},
		"the public one when none is named":   {"", good, good},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := choose(t.Context(), c.named, c.public)
			if err != nil || db.url != c.want || db.modified.Format(time.DateOnly) != "2026-01-02" {
				t.Errorf("%+v, %v", db, err)
			}
		})
	}
}

func TestADatabaseThatCannotBeAsked(t *testing.T) {
	for name, location := range map[string]string{
		"is not there":                   answering(t, http.StatusNotFound, ""),
		"is a page about something else": answering(t, http.StatusOK, "<html>sign in</html>"),
		"has no date":                    answering(t, http.StatusOK, "{}"),
		"is an empty folder":             "file://" + filepath.ToSlash(t.TempDir()),
		"is no URL that we know":         "ftp://example.com",
	} {
		t.Run(name, func(t *testing.T) {
			var silent *silentError
			if _, err := choose(t.Context(), location, "https://not.asked.invalid"); err == nil || errors.As(err, &silent) ||
				!strings.Contains(err.Error(), location) {
				t.Errorf("somebody has named it, and the check says %v", err)
			}
			if _, err := choose(t.Context(), "", location); !errors.As(err, &silent) {
				t.Errorf("nobody has named it, and the check says %v", err)
			}
		})
	}
	t.Run("never answers", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var silent *silentError
		if _, err := choose(ctx, "", silentServer(t)); !errors.As(err, &silent) {
			t.Errorf("the check says %v", err)
		}
	})
}

// What cannot be checked is said, and does not pass for checked.
func TestWithoutADatabaseItSaysThatNothingWasChecked(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the public database is out of reach
	if err := run(ctx, &out, "not-run", ""); err != nil {
		t.Errorf("a machine without a way out cannot pass: %v", err)
	}
	if !strings.HasPrefix(out.String(), "NOT CHECKED") || !strings.Contains(out.String(), "GOVULNDB") {
		t.Errorf("it says %s", &out)
	}
	if err := run(t.Context(), &out, "not-run", "file:///not/there"); err == nil {
		t.Error("a database that is named and is not there passes")
	}
}

func TestWhatGovulncheckSays(t *testing.T) {
	const config = `{"config":{"scanner_name":"govulncheck"}}`
	const osv = `{"osv":{"id":"GO-1","summary":"It is bad"}}`
	const called = `{"finding":{"osv":"GO-1","fixed_version":"v1.2.0","trace":[{"module":"example.com/m","version":"v1.0.0","package":"example.com/m","receiver":"*T","function":"F"},{"module":"ours","package":"ours/cmd","function":"main"}]}}`
	const longer = `{"finding":{"osv":"GO-1","fixed_version":"v1.2.0","trace":[{"module":"example.com/m","version":"v1.0.0","package":"example.com/m","function":"G"},{"package":"a","function":"b"},{"package":"ours/cmd","function":"main"}]}}`
	const imported = `{"finding":{"osv":"GO-1","trace":[{"module":"example.com/m","version":"v1.0.0","package":"example.com/m"}]}}`
	t.Run("what is called is reported once, by the shortest way", func(t *testing.T) {
		found, err := parse(strings.NewReader(config + longer + called + "\n" + osv + imported))
		want := "GO-1 in example.com/m@v1.0.0, fixed in v1.2.0: It is bad\n\tours/cmd.main calls example.com/m.(*T).F"
		if err != nil || len(found) != 1 || found[0].String() != want {
			t.Errorf("%v, %v", found, err)
		}
	})
	t.Run("of what is only there is nothing to tell", func(t *testing.T) {
		if found, err := parse(strings.NewReader(config + osv + imported)); err != nil || len(found) != 0 {
			t.Errorf("%v, %v", found, err)
		}
	})
	for name, text := range map[string]string{"nothing": "", "no JSON": config + "panic: out of memory"} {
		t.Run("is "+name+", which is not taken for a pass", func(t *testing.T) {
			if _, err := parse(strings.NewReader(text)); err == nil {
				t.Error("it passes")
			}
		})
	}
}

// govulncheck builds the pinned program.
func govulncheck(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "govulncheck")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "golang.org/x/vuln/cmd/govulncheck")
	command.Dir = "../../tools"
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build govulncheck: %v\n%s", err, out)
	}
	return program
}

func TestAProgramThatCallsWhatIsKnownToBeVulnerableFails(t *testing.T) {
	s := scan{scanner: govulncheck(t), directory: "testdata/module", database: ownDatabase(t)}
	vulnerable, sound := target{"the vulnerable one", "windows", "."}, target{"the sound one", "linux", "./sound"}
	t.Run("and says what it calls", func(t *testing.T) {
		var out bytes.Buffer
		err := check(t.Context(), &out, s, []target{sound, vulnerable}, nil)
		if err == nil || !strings.Contains(err.Error(), vulnerable.name) || strings.Contains(err.Error(), sound.name) {
			t.Errorf("the check says %v", err)
		}
		if text := out.String(); !strings.Contains(text, "GO-0000-0001 in stdlib@") ||
			!strings.Contains(text, "vulnerable.greeting calls strings.ToTitle") {
			t.Errorf("it tells %s", text)
		}
	})
	t.Run("unless a reason is entered", func(t *testing.T) {
		var out bytes.Buffer
		err := check(t.Context(), &out, s, []target{vulnerable}, map[string]string{"GO-0000-0001": "titles are not used",
			"GO-0000-0002": "gone"})
		if err != nil || !strings.Contains(out.String(), "titles are not used") || !strings.Contains(out.String(),
			"GO-0000-0002 is no longer needed") {
			t.Errorf("%v\n%s", err, &out)
		}
	})
	t.Run("and what cannot be scanned fails, too", func(t *testing.T) {
		if err := check(t.Context(), &bytes.Buffer{}, s, []target{{"nothing", "linux", "./not-there"}}, nil); err == nil {
			t.Error("it passes")
		}
	})
}
