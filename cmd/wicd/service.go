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

// crashFile returns the path of the file for the Go runtime's report about a crash of the service, which has no
// standard error.
func crashFile() string { return nodespec.LogDirectory(nodespec.ServiceAgent) + `\wicd-crash.log` }

// maxCrashFile is the size in bytes above which the file is truncated.
const maxCrashFile = 1 << 20

// runService runs the agent as a Windows service until the service control manager stops it. runService connects to
// the manager first: a later failure is a failure of the service, with its exit code, and not a failed start.
func runService(args []string) int {
	err := winservice.Run(nodespec.ServiceAgent, clock.RealClock{}, func(ctx context.Context, ready func()) int {
		crashes := keepCrashes()
		process, err := newProcess(args)
		if err != nil {
			_, _ = fmt.Fprintln(crashes, "wicd:", err)
			return 1
		}
		process.Stdout, process.Stderr, process.Ready = io.Discard, io.Discard, ready // the agent writes its own log
		return agent.Main(ctx, process)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "wicd:", err)
		return 1
	}
	return 0
}

// keepCrashes makes the runtime write a crash to a file, and returns the file for errors before the log exists.
// Without the log directory, there is no such file.
func keepCrashes() io.Writer {
	how := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(crashFile()); err == nil && info.Size() > maxCrashFile {
		how |= os.O_TRUNC
	}
	file, err := os.OpenFile(crashFile(), how, 0o600)
	if err != nil {
		return io.Discard
	}
	_ = debug.SetCrashOutput(file, debug.CrashOptions{}) // the service also runs without it
	return file
}
