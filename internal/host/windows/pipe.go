package windows

import (
	"fmt"
	"strings"
)

// pipeOf returns the named pipe path of a CRI endpoint: \\.\pipe\containerd-containerd for
// npipe://./pipe/containerd-containerd. Endpoints with four slashes or with backslashes are also accepted.
func pipeOf(endpoint string) (string, error) {
	rest, isPipe := strings.CutPrefix(endpoint, "npipe:")
	name, isLocal := strings.CutPrefix(strings.TrimLeft(strings.ReplaceAll(rest, "/", `\`), `\`), `.\pipe\`)
	if !isPipe || !isLocal || name == "" {
		return "", fmt.Errorf("the endpoint %q is not of the form npipe://./pipe/name", endpoint)
	}
	return `\\.\pipe\` + name, nil
}
