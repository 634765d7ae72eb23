package bench

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
