package fake

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Kind is the kind of a journal entry.
type Kind string

// Kinds of journal entries.
const (
	KindConnection  Kind = "connection"  // SSH server: a connection was accepted
	KindExec        Kind = "exec"        // Machine.Exec; Detail is the command line
	KindSFTP        Kind = "sftp"        // SSH server: an SFTP session began
	KindReceived    Kind = "received"    // SSH server: bytes from the network
	KindSent        Kind = "sent"        // SSH server: bytes to the network
	KindWrite       Kind = "write"       // a file was written; Bytes is its size
	KindFile        Kind = "file"        // a directory or link was created, an entry was renamed or removed
	KindProcess     Kind = "process"     // a process started or ended
	KindService     Kind = "service"     // configure, start, stop, delete, crash, restart
	KindFeature     Kind = "feature"     // an optional feature was switched
	KindHostName    Kind = "hostname"    // a computer name was set or took effect
	KindEnvironment Kind = "environment" // a machine-wide variable changed
	KindFirewall    Kind = "firewall"    // a rule changed
	KindRegistry    Kind = "registry"    // a number was set or deleted
	KindNetwork     Kind = "network"     // an HNS network or endpoint was created or deleted
	KindRoute       Kind = "route"       // a route was added, deleted or lost
	KindRoot        Kind = "root"        // a trusted root was added or removed
	KindLog         Kind = "log"         // a log was rotated; Bytes is its size
	KindEvent       Kind = "event"       // an entry was written to the event log
	KindEventSource Kind = "eventsource" // an event source was added or removed
	KindAntivirus   Kind = "antivirus"   // an exclusion of Microsoft Defender Antivirus was added or removed
	KindPower       Kind = "power"       // boot and power off
	KindReboot      Kind = "reboot"      // a reboot was requested
)

// Entry is a record of one event.
type Entry struct {
	Time   time.Time
	Kind   Kind
	Detail string
	Bytes  int64
	PID    int // of the responsible process; 0 if there is none
}

// Journal is an append-only record of all changes and costs of a machine.
type Journal struct {
	clock   clock.PassiveClock
	changes *broadcast

	mu      sync.Mutex
	entries []Entry
	counts  map[Kind]int
	bytes   map[Kind]int64
}

func newJournal(clock clock.PassiveClock, changes *broadcast) *Journal {
	return &Journal{clock: clock, changes: changes, counts: map[Kind]int{}, bytes: map[Kind]int64{}}
}

// Append adds an entry with the current time. It also wakes Machine.WaitFor.
func (j *Journal) Append(kind Kind, detail string, bytes int64) {
	j.appendEntry(kind, detail, bytes, 0)
}

func (j *Journal) appendEntry(kind Kind, detail string, bytes int64, pid int) {
	j.mu.Lock()
	j.entries = append(j.entries, Entry{Time: j.clock.Now(), Kind: kind, Detail: detail, Bytes: bytes, PID: pid})
	j.counts[kind]++
	j.bytes[kind] += bytes
	j.mu.Unlock()
	j.changes.notifyWaiters()
}

// DropEntries deletes the entries, for labs that would otherwise exceed the memory. Counts and sums are kept.
func (j *Journal) DropEntries() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = nil
}

// Count returns the number of entries of the kind.
func (j *Journal) Count(kind Kind) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts[kind]
}

// Bytes returns the sum of the bytes of all entries of the kind.
func (j *Journal) Bytes(kind Kind) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes[kind]
}

// Entries returns the entries accepted by the filter (nil accepts all), oldest first.
func (j *Journal) Entries(filter func(Entry) bool) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var accepted []Entry
	for _, entry := range j.entries {
		if filter == nil || filter(entry) {
			accepted = append(accepted, entry)
		}
	}
	return accepted
}

// broadcast wakes all goroutines that wait for a change.
type broadcast struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// nextChange returns a channel that is closed with the next change.
func (b *broadcast) nextChange() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

func (b *broadcast) notifyWaiters() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
