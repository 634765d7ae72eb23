package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// For each failing host, an administrator gets the reason and the remedy: in the table, in the description of the
// host, and in the archive.
func TestFailingHosts_ReportedWithReasonAndRemedy(t *testing.T) {
	failures := []struct {
		fault         winhost.Fault
		state, reason string
		unreachable   bool
	}{
		{winhost.RefuseConnection, "Unreachable", "refused", true},
		{winhost.RejectKey, "AuthenticationFailed", "authorized_keys", true},
		{winhost.FillDisk, "DiskFull", "has no space for", true},
		{winhost.BashDefaultShell, "ShellUnsupported", "DefaultShell", true},
		{winhost.AgentBlocked, "AgentBlocked", "AppLocker", true},
		{winhost.FailServiceStart, "ServiceFailed", "containerd", false},
	}
	options := []testenv.HostOptions{{Name: "well"}}
	for _, f := range failures {
		options = append(options, testenv.HostOptions{Name: string(f.fault)})
	}
	l := lab{t, e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t), PayloadDir: files.Directory(t), Hosts: options})}
	e2e.Install(t, l.Environment)
	for _, f := range failures {
		l.Host(string(f.fault)).Inject(f.fault, f.fault.Example())
	}
	if _, err := l.RunOperator(); err != nil {
		t.Fatal(err)
	}
	if err := l.ListHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.waitForSummary("well", "Ready")
	var unreachable []string
	for _, f := range failures {
		t.Run(f.state, func(t *testing.T) {
			l := lab{t, l.Environment}
			l.runUntilOutput(f.state, "status", l.getInstance(string(f.fault)).Spec.Address)
			name := l.getInstance(string(f.fault)).Name
			l.runUntilOutput(f.state+": "+name, "status")
			l.runUntilOutput(f.reason, "status", name)
			if f.unreachable {
				unreachable = append(unreachable, name)
			}
		})
	}
	dir := t.TempDir()
	out, _, err := l.runWindows("gather", "--dest-dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range unreachable {
		if first, _, _ := strings.Cut(out, "another reason"); !strings.Contains(first, name) {
			t.Errorf("gather does not name %s as out of reach:\n%s", name, out)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil || !strings.Contains(string(page), "5 of 7 hosts are unreachable") {
		t.Errorf("%v\n%.3000s", err, page)
	}
}
