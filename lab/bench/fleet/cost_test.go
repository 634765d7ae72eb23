package fleet

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

func TestCosts(t *testing.T) {
	a, b := Cost{Connections: 2, Execs: 1, Received: 5, Sent: 1}, Cost{Connections: 1, Execs: 8, Processes: 3, Services: 4,
		Reboots: 1, SFTPSessions: 1, PowerShell: 1}
	if got := worstCost([]Cost{a, b}); got != (Cost{Connections: 2, Execs: 8, Processes: 3, Services: 4, Reboots: 1,
		SFTPSessions: 1, PowerShell: 1, Received: 5, Sent: 1}) {
		t.Errorf("worst is %+v", got)
	}
	total := totalCost([]Cost{a, b})
	if total.Connections != 3 || total.Execs != 9 || total.differenceFrom(b) != a {
		t.Errorf("sum is %+v", total)
	}
}

func TestTransferSeconds_UsesSessionWithMostBytes(t *testing.T) {
	at := func(second int, kind fake.Kind, bytes int64) fake.Entry {
		return fake.Entry{Time: time.Unix(int64(second), 0), Kind: kind, Bytes: bytes}
	}
	for name, c := range map[string]struct {
		entries []fake.Entry
		want    float64
	}{
		"agent, packed programs, and a command with a long answer": {[]fake.Entry{
			at(1, fake.KindSFTP, 0), at(2, fake.KindReceived, 10), at(5, fake.KindSFTP, 0), at(6, fake.KindFile, 0), at(9, fake.KindReceived, 40),
			at(20, fake.KindReceived, 90)}, 4},
		"no session": {[]fake.Entry{at(1, fake.KindReceived, 10)}, 0},
	} {
		if got := transferSeconds(c.entries); got != c.want {
			t.Errorf("%s: %v s", name, got)
		}
	}
}

func TestIsPowerShell_CountsProgramsOnly(t *testing.T) {
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

func TestCostOf_CountsJournalEntries(t *testing.T) {
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
	got := costOf(journal).differenceFrom(before)
	if want := (Cost{Connections: 1, Execs: 2, PowerShell: 1, SFTPSessions: 1, Reboots: 1, Processes: 1,
		Services: 1}); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCheckPlausible_JoinWithoutActivityRejected(t *testing.T) {
	plausible := Phase{Reads: 2, Writes: 2, All: Cost{Connections: 2, Execs: 2, SFTPSessions: 2, Processes: 2, Services: 2}}
	if err := plausible.checkPlausible(2); err != nil {
		t.Error(err)
	}
	for what, blind := range map[string]func(*Phase){
		"API reads": func(p *Phase) { p.Reads = 0 }, "API writes": func(p *Phase) { p.Writes = 0 }, "SSH connections": func(p *Phase) { p.All.Connections = 1 },
		"execs": func(p *Phase) { p.All.Execs = 0 }, "SFTP sessions": func(p *Phase) { p.All.SFTPSessions = 1 },
		"process starts": func(p *Phase) { p.All.Processes = 0 }, "service operations": func(p *Phase) { p.All.Services = 0 },
	} {
		t.Run("without "+what, func(t *testing.T) {
			p := plausible
			blind(&p)
			if err := p.checkPlausible(2); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestProcess_ProcessorTimeAndMemory(t *testing.T) {
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now <= before; { // a process that works uses processor time
		if now, err = processorTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := residentMemory(os.Getpid()); err != nil || m.Resident < 1<<20 || m.Peak < m.Resident {
		t.Errorf("this process has %+v, error %v", m, err)
	}
	if _, err := processorTime(1 << 30); err == nil {
		t.Error("a process that does not exist has processor time")
	}
	if _, err := residentMemory(1 << 30); err == nil {
		t.Error("a process that does not exist has memory")
	}
}

func TestCPU(t *testing.T) {
	before, after := CPU{Operator: 1, ControlPlane: 2, Hosts: 3}, CPU{Operator: 2, ControlPlane: 4, Hosts: 6}
	if got := after.differenceFrom(before); got != before || got.Total() != 6 {
		t.Errorf("got %+v", got)
	}
}
