// Package vulncheck tests the script that checks for known vulnerabilities.
package vulncheck

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The module calls a function that the tests' database lists as vulnerable. The program sound does not.
const (
	module     = "testdata/module"
	vulnerable = "windows:."
	sound      = "linux:./sound"
)

// ownDatabase returns the URL of the tests' database.
func ownDatabase(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/database")
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// servePage returns a server that responds to every request with this page.
func servePage(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// buildGovulncheck builds the pinned program.
func buildGovulncheck(t *testing.T) string {
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

// runCheck runs the script, and returns the output and the result. Go's own database is unreachable.
func runCheck(t *testing.T, scanner, database string, programs ...string) (output string, passes bool) {
	t.Helper()
	script, err := filepath.Abs("check")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), script, append([]string{scanner}, programs...)...)
	command.Dir = module
	command.Env = append(os.Environ(), "GOVULNDB="+database, "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=")
	out, err := command.CombinedOutput()
	return string(out), err == nil
}

func TestVulncheck_ProgramCallingVulnerableCodeFails(t *testing.T) {
	scanner := buildGovulncheck(t)
	t.Run("and the check says what it calls", func(t *testing.T) {
		output, passes := runCheck(t, scanner, ownDatabase(t), vulnerable, sound)
		if passes {
			t.Error("it passes")
		}
		for _, want := range []string{"GO-0000-0001", "vulnerable.greeting calls strings.ToTitle", "DB updated: 2026-01-02", sound[len("linux:"):]} {
			if !strings.Contains(output, want) {
				t.Errorf("%q is missing in %s", want, output)
			}
		}
	})
	t.Run("and one that does not call it passes", func(t *testing.T) {
		if output, passes := runCheck(t, scanner, ownDatabase(t), sound); !passes {
			t.Errorf("it fails: %s", output)
		}
	})
	t.Run("and what cannot be scanned fails, too", func(t *testing.T) {
		if output, passes := runCheck(t, scanner, ownDatabase(t), "linux:./not-there", sound); passes {
			t.Errorf("it passes: %s", output)
		}
	})
	// A skipped check is reported, and is not counted as passed.
	t.Run("and without a database nothing is checked", func(t *testing.T) {
		if output, passes := runCheck(t, scanner, "", vulnerable); !passes || !strings.HasPrefix(output, "NOT CHECKED") ||
			!strings.Contains(output, "GOVULNDB") {
			t.Errorf("passes: %t, and says %s", passes, output)
		}
	})
	for name, database := range map[string]string{
		"is not there":                   servePage(t, http.StatusNotFound, ""),
		"is a page about something else": servePage(t, http.StatusOK, "<html>sign in</html>"),
		"has no date":                    servePage(t, http.StatusOK, "{}"),
		"is an empty folder":             "file://" + filepath.ToSlash(t.TempDir()),
		"is no URL that we know":         "ftp://example.com",
	} {
		t.Run("and fails with a named database that "+name, func(t *testing.T) {
			if output, passes := runCheck(t, scanner, database, sound); passes || !strings.Contains(output, database) {
				t.Errorf("passes: %t, and says %s", passes, output)
			}
		})
	}
}

// Only the caller of the check can fix these errors, independent of the database.
func TestVulncheck_FailsIfCheckCannotRun(t *testing.T) {
	programs := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(programs, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	runs := file("scanner", "#!/bin/sh\nexit 0\n", 0o700)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bash, filepath.Join(programs, "bash")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ scanner, path, want string }{
		"a scanner that is not there":        {filepath.Join(programs, "none"), "", filepath.Join(programs, "none")},
		"a scanner of another platform":      {file("foreign", "MZ\x00\x00", 0o700), "", "foreign"},
		"a scanner that may not be executed": {file("text", "#!/bin/sh\n", 0o600), "", "text"},
		"a scanner that fails":               {file("broken", "#!/bin/sh\nexit 2\n", 0o700), "", "broken"},
		"a machine without GNU's coreutils":  {runs, programs, "timeout"},
	} {
		t.Run("with "+name, func(t *testing.T) {
			if c.path != "" {
				t.Setenv("PATH", c.path)
			}
			if output, passes := runCheck(t, c.scanner, "", sound); passes || strings.Contains(output, "NOT CHECKED") || !strings.Contains(output, c.want) {
				t.Errorf("passes: %t, and says %s", passes, output)
			}
		})
	}
}
