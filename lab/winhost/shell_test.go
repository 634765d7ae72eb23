package winhost_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

var writeOptions = host.WriteOptions{}

// the meaning of a command line depends on the default shell.
func TestShells(t *testing.T) {
	const recognized = "is not recognized as"
	type want struct {
		out  string // exact
		errs string // part of stderr
		code int
	}
	cases := []struct {
		message               string
		line                  string
		cmd, powershell, bash want
	}{
		{
			"the line that tells the shells apart", `echo %OS% $PSHOME`,
			want{out: "Windows_NT $PSHOME\r\n"},
			want{out: "%OS%\r\n" + `C:\Windows\System32\WindowsPowerShell\v1.0` + "\r\n"},
			want{out: "%OS%\n"},
		},
		{
			"a path with plain flags means the same in cmd.exe and PowerShell", agentPath + ` plan --spec C:\k\wicd\inbox\spec-1.json`,
			want{out: `["plan","--spec","C:\\k\\wicd\\inbox\\spec-1.json"]` + "\n"},
			want{out: `["plan","--spec","C:\\k\\wicd\\inbox\\spec-1.json"]` + "\n"},
			want{errs: "C:kwicd0123456789abwicd.exe: command not found", code: 127},
		},
		{
			"a variable in an argument", `C:\k\print.exe %SystemRoot%\x $env:SystemRoot %NotSet%`,
			want{out: `["C:\\Windows\\x","$env:SystemRoot","%NotSet%"]` + "\n"},
			want{out: `["%SystemRoot%\\x","C:\\Windows","%NotSet%"]` + "\n"},
			want{errs: "command not found", code: 127},
		},
		{
			"words in quotes", `C:\k\print.exe "a b" 'c d'`,
			want{out: `["a b","'c","d'"]` + "\n"},
			want{out: `["a b","c d"]` + "\n"},
			want{errs: "command not found", code: 127},
		},
		{
			"escapes", "C:\\k\\print.exe a^&b c`d",
			want{out: "[\"a\\u0026b\",\"c`d\"]\n"},
			want{errs: "the lab's powershell.exe refuses the operator '&'", code: 1},
			want{errs: "the lab's bash.exe refuses the operator '&'", code: 1},
		},
		{
			"a path in quotes is an expression in PowerShell", `"C:\k\print.exe" a`,
			want{out: `["a"]` + "\n"},
			want{errs: "an expression and no command", code: 1},
			want{out: `["a"]` + "\n"},
		},
		{
			"slashes are options in cmd.exe", `C:/k/print.exe a`,
			want{errs: "'C:' " + recognized, code: 1},
			want{out: `["a"]` + "\n"},
			want{out: `["a"]` + "\n"},
		},
		{
			"an exit code becomes 1 in PowerShell", `C:\k\fail.exe`,
			want{errs: "no luck", code: 3},
			want{errs: "no luck", code: 1},
			want{errs: "command not found", code: 127},
		},
		{
			"a program that is not there", `C:\k\missing.exe facts`,
			want{errs: `'C:\k\missing.exe' is not recognized as an internal or external command,` + "\r\noperable program or batch file.\r\n", code: 1},
			want{errs: "CommandNotFoundException", code: 1},
			want{errs: "command not found", code: 127},
		},
		{
			"a folder that is not there", `C:\none\missing.exe facts`,
			want{errs: "The system cannot find the path specified.\r\n", code: 1},
			want{errs: "CommandNotFoundException", code: 1},
			want{errs: "command not found", code: 127},
		},
		{
			"an executable for another system", `C:\k\elf.exe`,
			want{errs: "is not compatible with the version of Windows", code: 1},
			want{errs: "not a valid application for this OS platform", code: 1},
			want{errs: "command not found", code: 127},
		},
		{
			"PowerShell is never called", `powershell.exe -Command Get-Service`,
			want{errs: recognized, code: 1}, want{errs: recognized, code: 1}, want{errs: "command not found", code: 127},
		},
		{
			"the tools of Windows are never called", `C:\Windows\System32\NETSH.EXE interface show`,
			want{errs: recognized, code: 1}, want{errs: recognized, code: 1}, want{errs: "command not found", code: 127},
		},
		{
			"a pipe is refused", `C:\k\print.exe | more`,
			want{errs: "the lab's cmd.exe refuses the operator '|'", code: 1},
			want{errs: "the lab's powershell.exe refuses the operator '|'", code: 1},
			want{errs: "the lab's bash.exe refuses the operator '|'", code: 1},
		},
		{
			"two commands are refused", "del x ; C:\\k\\print.exe",
			want{errs: `the lab's cmd.exe refuses its command "del"`, code: 1},
			want{errs: "refuses the operator ';'", code: 1},
			want{errs: "refuses the operator ';'", code: 1},
		},
		{
			"a flag that PowerShell splits", `C:\k\print.exe -spec:C`,
			want{out: `["-spec:C"]` + "\n"},
			want{errs: "which it splits in two", code: 1},
			want{errs: "command not found", code: 127},
		},
	}
	for _, shell := range []winhost.Shell{winhost.Cmd, winhost.PowerShell, winhost.Bash} {
		l := newLab(t, func(o *winhost.Options) { o.Shell = shell })
		l.writeFile(`C:\k\elf.exe`, "\x7fELF")
		for _, c := range cases {
			t.Run(string(shell)+": "+c.message, func(t *testing.T) {
				want := map[winhost.Shell]want{winhost.Cmd: c.cmd, winhost.PowerShell: c.powershell, winhost.Bash: c.bash}[shell]
				out, errs, code := l.run(c.line)
				if out != want.out || code != want.code || !strings.Contains(errs, want.errs) || (want.errs == "") != (errs == "") {
					t.Errorf("%s\ngot  %q, %q, exit %d\nwant %q, %q, exit %d", c.line, out, errs, code, want.out, want.errs, want.code)
				}
			})
		}
	}
}

func TestShells_ForbiddenCommandsRecorded(t *testing.T) {
	l := newLab(t)
	l.run("powershell.exe -Command Get-Service")
	l.run("C:\\k\\print.exe > C:\\out.txt")
	forbidden := l.journalDetails(winhost.KindForbidden)
	if len(forbidden) != 2 || !strings.Contains(forbidden[0], "powershell.exe") || !strings.Contains(forbidden[1],
		"the operator '>'") {
		t.Errorf("the journal has %q", forbidden)
	}
	if n := l.machine.Journal().Count(fake.KindExec); n != 0 {
		t.Errorf("%d processes were started", n)
	}
}
