package windows

import (
	"fmt"
	"strings"
)

// pipeOf returns the path of the named pipe of a CRI endpoint: \\.\pipe\containerd-containerd for
// npipe://./pipe/containerd-containerd, also when it is written with four slashes or backslashes.
func pipeOf(endpoint string) (string, error) {
	rest, isPipe := strings.CutPrefix(endpoint, "npipe:")
	name, isLocal := strings.CutPrefix(strings.TrimLeft(strings.ReplaceAll(rest, "/", `\`), `\`), `.\pipe\`)
	if !isPipe || !isLocal || name == "" {
		return "", fmt.Errorf("the endpoint %q is not of the form npipe://./pipe/name", endpoint)
	}
	return `\\.\pipe\` + name, nil
}
