package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/agent/winservice"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// crashFile returns the path of the file for the report of the Go runtime about a crash of the service, which has no
// standard error.
func crashFile() string { return nodespec.LogDirectory(nodespec.ServiceAgent) + `\wicd-crash.log` }

// maxCrashFile is the size in bytes from which the file begins again.
const maxCrashFile = 1 << 20

// runService runs the agent as a Windows service until the service control manager stops it. It connects to the manager
// before anything else: what fails later is a failure of the service, with its exit code, and not a start that never
// came.
func runService(args []string) int {
	err := winservice.Run(nodespec.ServiceAgent, clock.RealClock{}, func(ctx context.Context, ready func()) int {
		crashes := keepCrashes()
		process, err := newProcess(args)
		if err != nil {
			_, _ = fmt.Fprintln(crashes, "wicd:", err)
			return 1
		}
		process.Stdout, process.Stderr, process.Ready = io.Discard, io.Discard, ready // the agent writes its log itself
		return agent.Main(ctx, process)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "wicd:", err)
		return 1
	}
	return 0
}

// keepCrashes has the runtime write a crash to a file, which is also for what ends the service before it has a log.
// Without the folder of the log there is no such file.
func keepCrashes() io.Writer {
	how := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(crashFile()); err == nil && info.Size() > maxCrashFile {
		how |= os.O_TRUNC
	}
	file, err := os.OpenFile(crashFile(), how, 0o600)
	if err != nil {
		return io.Discard
	}
	_ = debug.SetCrashOutput(file, debug.CrashOptions{}) // without it the service runs as well
	return file
}
