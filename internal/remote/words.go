package remote

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/verb"
)

// What may stand in a command line. Both cmd.exe and PowerShell pass such words on unchanged: nothing is quoted,
// expanded, split or interpreted. PowerShell splits a word that begins with a dash at the first dot or colon, so flags
// are letters and dashes.
var (
	programWord  = regexp.MustCompile(`^[A-Za-z]:(\\[A-Za-z0-9][A-Za-z0-9_.-]*)+\.exe$`)
	flagWord     = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9-]*$`)
	argumentWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:\\-]*$`)
	urlWord      = regexp.MustCompile(`^https://[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{1,5}$`)
)

// commandLimit is shorter than what any Windows shell takes (cmd.exe: 8191 characters).
const commandLimit = 4000

// commandLine joins the agent's path, a verb and plain words. It refuses everything that a shell could understand as
// more than a plain word.
func commandLine(program string, name verb.Name, args []string) (string, error) {
	if !programWord.MatchString(program) {
		return "", fmt.Errorf("%q is not a plain path of a Windows program", program)
	}
	switch name {
	case verb.Facts, verb.Inspect, verb.Collect, verb.Plan, verb.Apply, verb.Verify, verb.Remove, verb.Rollback, verb.Commit, verb.Patch, verb.Reboot, verb.Renew:
	default:
		return "", fmt.Errorf("%q is not an agent command that is run over SSH", string(name))
	}
	words := []string{program, string(name)}
	for _, arg := range args {
		if !flagWord.MatchString(arg) && !argumentWord.MatchString(arg) && !urlWord.MatchString(arg) {
			return "", fmt.Errorf("argument %q of agent command %s is not a plain word", arg, name)
		}
		words = append(words, arg)
	}
	line := strings.Join(words, " ")
	if len(line) > commandLimit {
		return "", fmt.Errorf("the command line of agent command %s has %d characters; at most %d are allowed", name,
			len(line), commandLimit)
	}
	return line, nil
}
