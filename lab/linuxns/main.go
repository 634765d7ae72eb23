package linuxns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// ExitError is an exit code with a reason that was already printed.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the inside in namespaces and returns the exit code for a main function. An interrupt requests the
// end of the inside. A second interrupt kills the inside.
func Main(config Config, inside func(context.Context, *Environment) (exitCode int)) (exitCode int, err error) {
	if IsInside() {
		ctx, environment, err := Enter(context.Background())
		if err != nil {
			return 1, nil // The outside reports the reason.
		}
		code := inside(ctx, environment)
		// The outside also removes the directory, unless it was killed.
		return code, os.RemoveAll(environment.Dir)
	}
	// Signals are caught before the inside starts: an interrupt meanwhile would end only the outside and leave
	// its directory.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	process, err := Start(config)
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-signals
		cancel()
		<-signals
		process.Kill()
	}()
	return process.Wait(ctx)
}

// RunTests runs tests inside. If the machine forbids namespaces, it prints the reason and skips the tests.
func RunTests(config Config, run func() int) (exitCode int) {
	code, err := Main(config, func(context.Context, *Environment) int { return run() })
	switch {
	case errors.Is(err, ErrUnavailable):
		fmt.Printf("SKIPPED: all tests of this package: %v\n", err)
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
