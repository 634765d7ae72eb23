package winhost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Shell is the program to which OpenSSH for Windows passes command lines: the registry value DefaultShell.
type Shell string

// The shells.
const (
	Cmd        Shell = "cmd.exe"
	PowerShell Shell = "powershell.exe"
	Bash       Shell = "bash.exe"
)

// shellRules is how a shell reads a single simple command and speaks of failures. Everything beyond a simple command is
// refused: product code does without it, so that its commands mean the same in every shell.
type shellRules interface {
	read(line string, env environment) (action, error)
	// explain is what the shell writes to stderr about a failure, and its exit code.
	explain(failure failure, program string) (message string, exitCode int)
	// exitCode is the shell's own when the program ended with the code.
	exitCode(program int) int
}

func (s Shell) rules() shellRules {
	switch s {
	case PowerShell:
		return powershellRules{}
	case Bash:
		return bashRules{}
	}
	return cmdRules{}
}

// action is what a shell makes of a command line: it prints something itself or runs a program. Neither: it does
// nothing.
type action struct {
	output  string
	program string
	args    []string
}

// failure is why a program does not run.
type failure int

const (
	notFound failure = iota
	folderNotFound
	notExecutable
	accessDenied
	diskFull
)

// refusedError is what the lab's shells refuse though Windows' would not.
type refusedError string

func (e refusedError) Error() string { return string(e) }

func refuse(shell Shell, format string, args ...any) error {
	return refusedError(fmt.Sprintf("the lab's %s refuses %s", shell, fmt.Sprintf(format, args...)))
}

// forbiddenPrograms are tools and interpreters that product code must not call: it speaks to Windows through its API.
// Starting each takes a second or more, and none of them tells reliably what went wrong.
var forbiddenPrograms = []string{
	"bash", "bitsadmin", "cacls", "certutil", "cmd", "cscript", "curl", "dism", "hostname", "icacls", "ipconfig", "mklink",
	"msiexec", "net", "net1", "netsh", "powershell", "pwsh", "reg", "regsvr32", "robocopy", "route",
	"rundll32", "sc", "schtasks",
	"setx", "sftp-server", "shutdown", "systeminfo", "takeown", "tar", "taskkill", "tasklist", "timeout",
	"tzutil", "wevtutil",
	"where", "whoami", "wmic", "wscript", "wsl", "xcopy",
}

func forbidden(program string) bool {
	name := strings.ToLower(program[strings.LastIndexAny(program, `\/`)+1:])
	for _, extension := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, extension)
	}
	return slices.Contains(forbiddenPrograms, name)
}

// environment holds variables as Windows compares their names: in lower case.
type environment map[string]string

// variables returns the environment of a user's process as the shell sees it.
func (h *Host) variables(ctx context.Context, user string) environment {
	env := environment{
		"os": "Windows_NT", "systemdrive": "C:", "systemroot": `C:\Windows`, "programdata": `C:\ProgramData`,
		"programfiles": `C:\Program Files`,
	}
	values, err := h.machine.Host().Environment.Get(ctx)
	if err == nil { // else the machine goes down, and the command with it
		for name, value := range values {
			env[strings.ToLower(name)] = value
		}
	}
	for name, value := range h.userEnvironment(user) {
		env[strings.ToLower(name)] = value
	}
	return env
}

// userEnvironment is what a login adds to the machine's environment.
func (h *Host) userEnvironment(user string) map[string]string {
	name, domain := account(user)
	return map[string]string{
		"USERNAME": name, "USERDOMAIN": cmp.Or(domain, strings.ToUpper(h.machine.Name())), "USERPROFILE": home(user), "HOMEPATH": home(user)[2:], "HOMEDRIVE": "C:",
		"COMPUTERNAME": strings.ToUpper(h.machine.Name()),
		"APPDATA":      home(user) + `\AppData\Roaming`, "LOCALAPPDATA": home(user) + `\AppData\Local`,
	}
}
