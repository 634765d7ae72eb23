package winhost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Shell is the program that OpenSSH for Windows passes command lines to: the registry value DefaultShell.
type Shell string

// The shells.
const (
	Cmd        Shell = "cmd.exe"
	PowerShell Shell = "powershell.exe"
	Bash       Shell = "bash.exe"
)

// shellRules describes how a shell parses a single simple command and reports failures. Any other syntax is refused:
// product code does not use other syntax, so that commands have the same meaning in every shell.
type shellRules interface {
	read(line string, env environment) (action, error)
	// explainFailure returns the shell's message on stderr about a failure, and the exit code.
	explainFailure(failure failure, program string) (message string, exitCode int)
	// exitCode returns the shell's exit code for the exit code of the program.
	exitCode(program int) int
}

func (s Shell) parsingRules() shellRules {
	switch s {
	case PowerShell:
		return powershellRules{}
	case Bash:
		return bashRules{}
	}
	return cmdRules{}
}

// action is the effect of a command line: the shell prints output itself, runs a program, or does nothing.
type action struct {
	output  string
	program string
	args    []string
}

// failure is the reason why a program does not run.
type failure int

const (
	notFound failure = iota
	directoryNotFound
	notExecutable
	accessDenied
	diskFull
)

// refusedError is the refusal of a command line by the lab's shells that Windows' shells would accept.
type refusedError string

func (e refusedError) Error() string { return string(e) }

func newRefusal(shell Shell, format string, args ...any) error {
	return refusedError(fmt.Sprintf("the lab's %s refuses %s", shell, fmt.Sprintf(format, args...)))
}

// forbiddenPrograms are tools and interpreters that product code must not call: product code calls the Windows API.
// Starting each program takes a second or more, and none reports errors reliably.
var forbiddenPrograms = []string{
	"bash", "bitsadmin", "cacls", "certutil", "cmd", "cscript", "curl", "dism", "hostname", "icacls", "ipconfig", "mklink",
	"msiexec", "net", "net1", "netsh", "powershell", "pwsh", "reg", "regsvr32", "robocopy", "route",
	"rundll32", "sc", "schtasks",
	"setx", "sftp-server", "shutdown", "systeminfo", "takeown", "tar", "taskkill", "tasklist", "timeout",
	"tzutil", "wevtutil",
	"where", "whoami", "wmic", "wscript", "wsl", "xcopy",
}

func isForbidden(program string) bool {
	name := strings.ToLower(program[strings.LastIndexAny(program, `\/`)+1:])
	for _, extension := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, extension)
	}
	return slices.Contains(forbiddenPrograms, name)
}

// environment holds variables by name in lower case, as Windows compares names.
type environment map[string]string

// shellEnvironment returns the environment of a user's process as the shell sees it.
func (h *Host) shellEnvironment(ctx context.Context, user string) environment {
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

// userEnvironment returns the variables that a login adds to the machine's environment.
func (h *Host) userEnvironment(user string) map[string]string {
	name, domain := splitUser(user)
	return map[string]string{
		"USERNAME": name, "USERDOMAIN": cmp.Or(domain, strings.ToUpper(h.machine.Name())), "USERPROFILE": homeDirectory(user), "HOMEPATH": homeDirectory(user)[2:], "HOMEDRIVE": "C:",
		"COMPUTERNAME": strings.ToUpper(h.machine.Name()),
		"APPDATA":      homeDirectory(user) + `\AppData\Roaming`, "LOCALAPPDATA": homeDirectory(user) + `\AppData\Local`,
	}
}
