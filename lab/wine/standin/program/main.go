//go:build windows

// Program is the node program of a Wine host. It simulates the executables of a Windows node (lab/standin) with
// real processes, files, HNS calls and connections. Every host has the program on its drive
// (standin.NodeProgram). The launcher in every executable of the lab's payload starts it: node.exe "PATH OF THE
// EXECUTABLE" ARGUMENTS.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/winservice"
	"github.com/windows-machine-config/wmco/internal/host/windows"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// serviceFlags are the flags by which the real programs detect a start by the service control manager.
var serviceFlags = []string{"--windows-service", "-windows-service", "--windows-service=true", "-windows-service=true",
	"--run-service", "-run-service"}

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "this is the lab's node program: start an executable of the lab's payload instead")
		return 1
	}
	path, args := os.Args[1], os.Args[2:]
	e, err := payload.ReadProgram(path)
	if err == nil {
		err = endWithParent()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if !isService(e, args) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		return runProgram(ctx, path, args, e, false)
	}
	code := 0
	err = winservice.Run(strings.TrimSuffix(e.File, ".exe"), clock.RealClock{},
		func(ctx context.Context, ready func()) int {
			ready()
			code = runProgram(ctx, path, args, e, true)
			return code
		})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// isService evaluates the command line. windows_exporter has no such flag and queries Windows instead, which
// Wine answers wrongly, so that any command line with a flag counts.
func isService(e payload.Executable, args []string) bool {
	if e.File == "windows_exporter.exe" {
		return len(args) > 0 && args[0] != "--version"
	}
	if e.File == "kube-log-runner.exe" { // The flags belong to the child.
		return false
	}
	return slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(serviceFlags, arg) })
}

func runProgram(ctx context.Context, path string, args []string, e payload.Executable, service bool) int {
	host, err := windows.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	machine := newMachine(host)
	defer machine.close()
	return standin.Run(ctx, standin.Options{Separate: true}, &node.Process{
		PID: os.Getppid(), Path: filepath.Clean(path), Args: args, Service: service,
		Stdout: os.Stdout, Stderr: os.Stderr, Host: host, Machine: machine,
	}, e)
}
