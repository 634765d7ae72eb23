package namespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// ExitError is an exit code whose reason was printed already.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the inside in namespaces and returns the exit code: what a main function calls. An interrupt asks the
// inside to end. A second one kills it.
func Main(config Config, inside func(context.Context, *Environment) (exitCode int)) (exitCode int, err error) {
	if Inside() {
		ctx, environment, err := Enter(context.Background())
		if err != nil {
			return 1, nil // The outside says why.
		}
		code := inside(ctx, environment)
		// The outside does this as well, unless it was killed.
		return code, os.RemoveAll(environment.Dir)
	}
	// From before the inside begins: an interrupt meanwhile would end the outside alone, and leave its directory.
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

// RunTests runs tests inside. Where no namespaces can be made it says so and runs none.
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
