package robustness

import (
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
)

// collectTraces returns the logs of the programs on hosts, including the agent, and the stacks of all goroutines of
// this process. They explain a run that did not settle.
func (l *lab) collectTraces() string {
	var b strings.Builder
	for _, h := range append(l.Hosts(), l.MachineHosts()...) {
		machine := h.Machine()
		files := machine.Snapshot().Files
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if !strings.HasPrefix(path, `C:\var\log\`) || files[path].Directory || files[path].LinkTarget != "" {
				continue
			}
			content, err := machine.Drive().ReadFile(path)
			if err != nil {
				content = []byte(err.Error())
			}
			fmt.Fprintf(&b, "--- %s: %s\n%s\n", h.Options.Name, path, content[max(0, len(content)-traceBytes):])
		}
	}
	fmt.Fprintln(&b, "--- goroutines")
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2) // a strings.Builder never fails
	return b.String()
}

// traceBytes is the maximum size of the kept end of a log.
const traceBytes = 200 << 10
