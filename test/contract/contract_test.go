// Package contract_test runs Windows-only tests on the lab's Wine hosts: the tests that build only for Windows, and
// the host contract suite against internal/host/windows. It compares the results of the suite with
// docs/verified/wine.json, the source of docs/verified/results.md.
package contract_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/hosttest"
	"github.com/windows-machine-config/wmco/lab/wine"
)

const (
	resultsFile = "docs/verified/wine.json"
	program     = `C:\contract.exe`
	remote      = `C:\wine.json`
)

var update = flag.Bool("update", false, "write the results to docs/verified/wine.json")

// enabled is the feature that includes the Host Networking Service, as the simulated DISM stores it.
const enabled = `[Software\\wmco-lab\\features\\Containers]
"DisplayName"="Containers"
"State"=dword:00000004
"Restart"=dword:00000001
`

// Over SSH, without a console, features are changed by calls that show no progress. The API is simulated by the lab
// and refuses all other calls; the calls are the agent's. The WMI of the lab refuses classes, methods and
// parameters other than Defender's.
func TestHostContractUnderWine(t *testing.T) {
	ctx := requireWine(t)
	files := map[string]string{program: buildTests(ctx, t, "./internal/host/windows")}

	withContainers := bootHost(ctx, t, "contract-a", "10.87.0.4", files, enabled)
	run(ctx, t, withContainers, suiteCommand(""))

	restarted := bootHost(ctx, t, "contract-b", "10.87.0.5", files)
	restartHost(ctx, t, restarted)
	run(ctx, t, restarted, suiteCommand("check"))
	checkRestart(t, restarted, "InitiateSystemShutdownEx: second half of the host contract suite")

	compareResults(t, readResults(t, withContainers).Merge(readResults(t, restarted)))
}

// In the suite, ExitWindowsEx is refused in sessions of the SSH server.
func TestRestart_UsesExitWindowsExIfRequired(t *testing.T) {
	ctx := requireWine(t)
	h := bootHost(ctx, t, "contract-c", "10.87.0.8", map[string]string{program: buildTests(ctx, t, "./internal/host/windows")},
		"[Software\\\\wmco-lab\\\\faults\\\\power]\n\"Initiate\"=dword:000004a6\n\"ExitInSessions\"=dword:00000001\n")
	restartHost(ctx, t, h)
	checkRestart(t, h, "ExitWindowsEx: ")
}

// restartHost runs the first half of the suite, which restarts the host.
func restartHost(ctx context.Context, t *testing.T, h *wine.Host) {
	t.Helper()
	before := h.Boots()
	if result, err := h.Exec(ctx, suiteCommand("arm")); err != nil {
		t.Logf("the connection ended with the machine: %v", err)
	} else if result.ExitCode != 0 {
		t.Fatalf("the host is not restarted:\n%s", markLines(result, ""))
	}
	if err := h.WaitBoot(ctx, before+1); err != nil {
		t.Fatal(err)
	}
}

// checkRestart checks the Windows function that restarted the host, and its message.
func checkRestart(t *testing.T, h *wine.Host, want string) {
	t.Helper()
	path, err := h.Path(`C:\windows\wmco-lab-restart.txt`)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimRight(string(content), "\r\n"); got != want {
		t.Errorf("the host was restarted by %q, want %q", got, want)
	}
}

func suiteCommand(half string) string {
	words := []string{program, "-test.v", "-test.run=TestHostContract", "-environment=wine", "-results=" + remote}
	if half != "" {
		words = append(words, "-reboot="+half)
	}
	return strings.Join(words, " ")
}

// readResults returns the report of a host.
func readResults(t *testing.T, h *wine.Host) hosttest.Report {
	t.Helper()
	path, err := h.Path(remote)
	if err != nil {
		t.Fatal(err)
	}
	report, err := hosttest.ReadReport(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// compareResults compares the report of the suite with the documents.
func compareResults(t *testing.T, now hosttest.Report) {
	t.Helper()
	if t.Failed() {
		return
	}
	if *update {
		if err := now.Write(filepath.Join(root, filepath.FromSlash(resultsFile))); err != nil {
			t.Fatal(err)
		}
	}
	known, err := hosttest.ReadReport(os.DirFS(root), resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range known.Difference(now) {
		t.Errorf("%s is out of date, run this test with -update and then `make generate`: %s", resultsFile, line)
	}
}
