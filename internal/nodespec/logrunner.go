package nodespec

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// logRunner runs another program and writes its output to a log.
const logRunner = "kube-log-runner.exe"

// RunsAs reports whether a service's process with this command line is what its configuration starts. Under
// kube-log-runner the process is the runner or the program that it has started: it is the latter that connects to the
// service control manager, and Windows does not say which of the two it shows then.
func RunsAs(running, configured string) bool {
	if running == configured {
		return true
	}
	child := UnderLogRunner(configured)
	return len(child) > 0 && slices.Equal(host.SplitCommandLine(running), child)
}

// UnderLogRunner returns the words of the program that a command line has kube-log-runner run; none where there is no
// runner.
func UnderLogRunner(commandLine string) []string {
	words := host.SplitCommandLine(commandLine)
	if len(words) == 0 || !strings.EqualFold(words[0][strings.LastIndexByte(words[0], '\\')+1:], logRunner) {
		return nil
	}
	words = words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	return words
}
