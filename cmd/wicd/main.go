// Command wicd is the agent on a Windows host, the windows instance config daemon. It runs one verb over SSH, or runs as the Windows
// service of that name.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(run())
}

func run() int {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(version)
		return 0
	}
	machine, err := openHost()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wicd:", err)
		return 1
	}
	executable, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wicd: where this program lies is not known:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return agent.Main(ctx, agent.Process{
		Host: machine, Args: os.Args[1:], Executable: executable, Version: version,
		Stdout: os.Stdout, Stderr: os.Stderr, Clock: clock.RealClock{}, Rand: rand.Reader,
	})
}
