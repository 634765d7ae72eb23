package hostcost

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

func TestPowerShellIsCountedAsAProgram(t *testing.T) {
	for line, want := range map[string]bool{
		`powershell.exe -NonInteractive -Command "x"`:                                true,
		`cmd /c "C:\Windows\System32\WindowsPowerShell\v1.0\PowerShell.exe" -File x`: true,
		`start pwsh -c x`: true,
		`dir && pwsh`:     true,
		`C:\k\wicd\0\wicd.exe apply --certificate LS0tLS1CRUdJTiBPwShDRVJUSUZJQ0FURQ==`: false,
		`C:\k\powershell-notes.txt`: false,
	} {
		if got := isPowerShell(fake.Entry{Kind: winhost.KindCommand, Detail: line}); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
	if isPowerShell(fake.Entry{Kind: fake.KindWrite, Detail: "powershell.exe"}) {
		t.Error("a file that is written is no start")
	}
}

func TestCostOfAJournal(t *testing.T) {
	journal := fake.New(fake.Options{Name: "a", System: fake.WindowsServer2022()}).Journal()
	before := costOf(journal)
	for _, e := range []struct {
		kind   fake.Kind
		detail string
	}{
		{fake.KindConnection, "from a"}, {winhost.KindCommand, `C:\k\wicd\a\wicd.exe facts`},
		{fake.KindExec, `C:\k\wicd\a\wicd.exe facts`},
		{winhost.KindCommand, `PowerShell.exe -Command x`},
		{winhost.KindForbidden, `powershell.exe: PowerShell.exe -Command x`},
		{fake.KindProcess, `start C:\k\kubelet.exe`}, {fake.KindProcess, `end C:\k\kubelet.exe`}, {fake.KindSFTP, "a"},
		{fake.KindService, "start kubelet"}, {fake.KindReboot, ""},
	} {
		journal.Append(e.kind, e.detail, 0)
	}
	got := costOf(journal).Minus(before)
	if want := (Cost{Connections: 1, Execs: 2, PowerShell: 1, SFTPSessions: 1, Reboots: 1, Processes: 1,
		Services: 1}); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
