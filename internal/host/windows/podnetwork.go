//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// podNetwork is host.PodNetwork: an endpoint and a namespace (compartment) of the Host Compute Network API, as a pod's
// sandbox has them, and a Winsock connection from a thread in that compartment. Endpoint and namespace have names of
// their own, so that what an earlier process could not take away any more is found and taken away first.
type podNetwork struct{}

const (
	podEndpoint = "wmco-pod-check"
	// podNamespace is the ID of the namespace; namespaces have no name.
	podNamespace = "5b1f3c0a-9d0e-4c55-8a8e-6f6d2c77a1d4"
	// podMutex lets one process after the other use them.
	podMutex = `Global\wmco-pod-check`
	// clearTime is how long Connect waits for the end of what it began when its context is done.
	clearTime = 10 * time.Second
)

func (podNetwork) Connect(ctx context.Context, network, address, provider string) error {
	failed := func(err error) error { return fmt.Errorf("connect to %s from network %s: %w", address, network, err) }
	if err := context.Cause(ctx); err != nil {
		return failed(err)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return failed(err)
	}
	if !to.Addr().Is4() {
		return failed(errors.New("only IPv4 addresses can be tried"))
	}
	done := make(chan error, 1)
	go func() {
		// Mutexes and compartments belong to threads. The thread is never unlocked: it ends with the goroutine, and nothing
		// else ever runs in the compartment.
		runtime.LockOSThread()
		done <- connectAsPod(ctx, network, to, provider)
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(clearTime)
		defer timer.Stop()
		select {
		case err = <-done:
		case <-timer.C:
			err = fmt.Errorf("the Host Networking Service hangs: %w", context.Cause(ctx))
		}
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// connectAsPod makes what a pod has, connects, and takes it away again.
func connectAsPod(ctx context.Context, network string, to netip.AddrPort, provider string) (err error) {
	if err := openHNS(); err != nil {
		return err
	}
	free, err := takeMutex(ctx, podMutex)
	if err != nil {
		return err
	}
	defer free()
	found, err := networkNamed(network)
	if clearErr := clearPod(); err == nil && clearErr != nil {
		err = fmt.Errorf("clean up after an earlier try: %w", clearErr)
	}
	if err != nil {
		return err
	}
	defer func() {
		if clearErr := clearPod(); clearErr != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", clearErr))
		}
	}()
	address, err := makePod(found, to.Addr(), provider)
	if err != nil {
		return err
	}
	compartment, err := compartmentOfPod()
	if err != nil {
		return err
	}
	if err := enterCompartment(compartment); err != nil {
		return err
	}
	if err := awaitAddress(ctx, address); err != nil {
		return err
	}
	return connectHere(ctx, to)
}

var _ host.PodNetwork = podNetwork{}
