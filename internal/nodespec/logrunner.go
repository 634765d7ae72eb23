package nodespec

import (
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// logRunner runs another program and writes its output to a log.
const logRunner = "kube-log-runner.exe"

// IsRunningAs reports whether a service's process with this command line was started from its configuration. Under
// kube-log-runner, Windows may report the runner or the started program, because the program connects to the
// service control manager.
func IsRunningAs(running, configured string) bool {
	if running == configured {
		return true
	}
	child := CommandUnderLogRunner(configured)
	return len(child) > 0 && slices.Equal(host.SplitCommandLine(running), child)
}

// CommandUnderLogRunner returns the words of the program that kube-log-runner starts, or none if the command line has no
// runner.
func CommandUnderLogRunner(commandLine string) []string {
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
