package remote

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

// Words allowed in a command line. cmd.exe and PowerShell pass such words on unchanged: nothing is quoted, expanded,
// split or interpreted. PowerShell splits a word that begins with a dash at the first dot or colon, so flags are
// letters, digits and dashes.
var (
	programWord  = regexp.MustCompile(`^[A-Za-z]:(\\[A-Za-z0-9][A-Za-z0-9_.-]*)+\.exe$`)
	flagWord     = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9-]*$`)
	argumentWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:\\-]*$`)
	urlWord      = regexp.MustCompile(`^https://[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{1,5}$`)
)

// commandLimit is the maximum length of a command line in characters, below the limit of any Windows shell (cmd.exe:
// 8191 characters).
const commandLimit = 4000

// commandLine joins the agent's path, a command name and plain words. It rejects any word that a shell could
// interpret.
func commandLine(program string, name agentapi.Name, args []string) (string, error) {
	if !programWord.MatchString(program) {
		return "", fmt.Errorf("%q is not a plain path of a Windows program", program)
	}
	switch name {
	case agentapi.Facts, agentapi.Inspect, agentapi.Collect, agentapi.Plan, agentapi.Apply, agentapi.Verify, agentapi.Remove, agentapi.Rollback, agentapi.Commit, agentapi.Patch, agentapi.Reboot, agentapi.Renew:
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
