// Command wicd is the agent on a Windows host, the windows instance config daemon. It runs one agent command
// over SSH, or runs as the Windows service of that name.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/agent/report"
)

// version is set by the linker.
var version = "dev"

func main() {
	exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Println(version)
		return 0
	}
	if agent.IsService(args) {
		return runService(args)
	}
	process, err := newProcess(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wicd:", err)
		return 1
	}
	process.Stdout, process.Stderr = os.Stdout, os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return agent.Main(ctx, process)
}

// newProcess returns the environment of the agent without its outputs.
func newProcess(args []string) (agent.Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return agent.Process{}, fmt.Errorf("cannot find the path of this program: %w", err)
	}
	machine, err := openHost()
	if err != nil {
		return agent.Process{}, err
	}
	return agent.Process{
		Host: machine, Args: args, Executable: executable, Version: version, Clock: clock.RealClock{}, Rand: rand.Reader,
		API: report.HTTPS{},
	}, nil
}
