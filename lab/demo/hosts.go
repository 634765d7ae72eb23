package main

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Kinds of hosts, as values of --host.
const (
	hostFake = "fake"
	hostWine = "wine"
)

// entry is the entry of a host in windows-instances.
type entry struct{ address, value string }

func entryOf(h testenv.HostOptions) entry {
	address, value := (&testenv.Host{Options: h}).Entry()
	return entry{address, value}
}

// hostOptions returns the options of all hosts, including an additional host that the user can add. With --once
// and Wine hosts there is no additional host, because no user can add it and it needs time and memory.
func (o *demoOptions) hostOptions() []testenv.HostOptions {
	n := o.hosts + 1
	if o.once && o.host == hostWine {
		n = o.hosts
	}
	hosts := testenv.Hosts(n)
	for i := range hosts {
		h := &hosts[i]
		h.Name, h.Address, h.Username = fmt.Sprintf("instance-%d", i+1), testenv.Address(i+1), cmp.Or(h.Username, "Administrator")
		h.RebootDuration, h.BootDelay = rebootDuration, bootDelay
	}
	return hosts
}

// listedEntries returns the entries of the first hosts, which become nodes.
func (d *demo) listedEntries() map[string]string {
	entries := map[string]string{}
	for _, h := range d.hostOptions()[:d.hosts] {
		e := entryOf(h)
		entries[e.address] = e.value
	}
	return entries
}

// inParallel calls a function for all items concurrently.
func inParallel[T any](items []T, do func(int, T) error) error {
	errs := make([]error, len(items))
	var group sync.WaitGroup
	for i, item := range items {
		group.Go(func() { errs[i] = do(i, item) })
	}
	group.Wait()
	return errors.Join(errs...)
}
