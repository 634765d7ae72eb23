//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

// Network compartments: SetCurrentThreadCompartmentId (iphlpapi.dll) lets a thread see the adapters of one
// (GetAdaptersAddresses) and make its sockets there. Mutexes: CreateMutexW, WaitForMultipleObjects, ReleaseMutex. All
// of that is a thread's, so the callers are locked to theirs.

// takeMutex waits for a mutex of the machine. One that a killed process had is free.
func takeMutex(ctx context.Context, name string) (free func(), err error) {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	mutex, err := windows.CreateMutex(nil, false, text)
	if mutex == 0 {
		return nil, fmt.Errorf("open the mutex %s: %w", name, translate(err))
	}
	if err := waitForObject(ctx, mutex); err != nil {
		_ = windows.CloseHandle(mutex) // was not taken
		return nil, fmt.Errorf("wait for another process that has the mutex %s: %w", name, err)
	}
	return func() {
		_ = windows.ReleaseMutex(mutex) // fails for another thread only
		_ = windows.CloseHandle(mutex)
	}, nil
}

const (
	// settling is how often a new address is looked at: Windows first makes sure that nobody else has it.
	settling = 20 * time.Millisecond
	// settled is how long that may take; a second or two are usual.
	settled = 8 * time.Second
)

// enterCompartment brings the thread into a compartment. It stays there, so its goroutine must end.
func enterCompartment(compartment uint32) error {
	enter, err := find("SetCurrentThreadCompartmentId")
	if err != nil {
		return err
	}
	if status, _, _ := enter.Call(uintptr(compartment)); status != 0 {
		return fmt.Errorf("enter network compartment %d: %w", compartment, translate(windows.Errno(uint32(status))))
	}
	return nil
}

// awaitAddress waits until an address of the compartment may be used.
func awaitAddress(ctx context.Context, address netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	again := time.NewTicker(settling)
	defer again.Stop()
	for {
		found, err := usable(address)
		if found || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the address %s of the HNS endpoint does not take effect: %w", address, context.Cause(ctx))
		}
	}
}

func usable(address netip.Addr) (found bool, err error) {
	err = eachAdapter(func(at *windows.IpAdapterAddresses) {
		for unicast := at.FirstUnicastAddress; unicast != nil; unicast = unicast.Next {
			has, ok := netip.AddrFromSlice(unicast.Address.IP())
			found = found || ok && has.Unmap() == address && unicast.DadState == windows.IpDadStatePreferred
		}
	})
	return found, err
}

// connectHere makes a TCP connection from the thread's compartment and ends it.
func connectHere(ctx context.Context, to netip.AddrPort) error {
	const version = 0x0202
	var data windows.WSAData
	if err := windows.WSAStartup(version, &data); err != nil {
		return fmt.Errorf("start Winsock: %w", err)
	}
	defer func() { _ = windows.WSACleanup() }() // fails only without WSAStartup
	socket, err := windows.Socket(windows.AF_INET, windows.SOCK_STREAM, windows.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	// Winsock's connect heeds no context; closing the socket ends it.
	closing := sync.OnceFunc(func() { _ = windows.Closesocket(socket) })
	defer closing()
	stop := context.AfterFunc(ctx, closing)
	defer stop()
	if err := windows.Connect(socket, &windows.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}
