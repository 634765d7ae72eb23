package fake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestEventLog(t *testing.T) {
	event := host.Event{Source: "Agent", Level: host.EventWarning, ID: 1, Message: "something"}
	t.Run("events are kept in order, without a source too, and over a reboot", func(t *testing.T) {
		r := bootMachine(t, nil)
		other := event
		other.ID, other.Level = 2, host.EventError
		r.requireNoError(r.EventLog.Report(r.ctx, event))
		r.requireNoError(r.EventLog.Report(r.ctx, other))
		r.requireNoError(r.Power.Reboot(r.ctx, "test"))
		r.requireNoError(r.WaitFor(r.ctx, (*Machine).IsRunning))
		if diff := cmp.Diff([]host.Event{event, other}, r.Events()); diff != "" {
			t.Error(diff)
		}
		if n := r.Journal().Count(KindEvent); n != 2 {
			t.Errorf("the journal has %d", n)
		}
	})
	t.Run("an event must have a source, a level and an ID that the message file has", func(t *testing.T) {
		r := bootMachine(t, nil)
		for _, change := range []func(*host.Event){
			func(e *host.Event) { e.Source = "" }, func(e *host.Event) { e.Level = "Fatal" },
			func(e *host.Event) { e.ID = 0 }, func(e *host.Event) { e.ID = 1001 },
		} {
			bad := event
			change(&bad)
			r.requireError(r.EventLog.Report(r.ctx, bad), errParameter)
		}
	})
	t.Run("a source is known from when it is added until it is removed, whatever the case of its name",
		func(t *testing.T) {
			r := bootMachine(t, nil)
			before := r.Snapshot()
			for _, want := range []bool{false, true} {
				if known, err := r.EventLog.HasSource(r.ctx, "agent"); err != nil || known != want {
					t.Errorf("known %v, %v", known, err)
				}
				r.requireNoError(r.EventLog.AddSource(r.ctx, "Agent"))
				r.requireNoError(r.EventLog.AddSource(r.ctx, "AGENT"))
			}
			if got := strings.Join(r.Snapshot().EventSources, " "); !strings.Contains(got, "Agent") {
				t.Errorf("the snapshot has %s", got)
			}
			r.requireNoError(r.EventLog.RemoveSource(r.ctx, "agent"))
			r.requireNoError(r.EventLog.RemoveSource(r.ctx, "agent"))
			if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
				t.Error(diff)
			}
			r.requireError(r.EventLog.AddSource(r.ctx, ""), errParameter)
		})
}

func TestAppend(t *testing.T) {
	r := bootMachine(t, nil)
	add := func(path, text string) error {
		return r.Files.Write(r.ctx, path, strings.NewReader(text),
			host.WriteOptions{Access: host.AccessInherited, Append: true})
	}
	r.requireNoError(add(`C:\log`, "one "))
	r.requireNoError(add(`C:\log`, "two"))
	if data, _ := r.Drive().ReadFile(`C:\log`); string(data) != "one two" {
		t.Errorf("got %q", data)
	}
	r.requireNoError(r.Files.Write(r.ctx, `C:\secret`, strings.NewReader("one "),
		host.WriteOptions{Access: host.AccessAdministrators}))
	r.requireNoError(add(`C:\secret`, "two"))
	if info, _ := r.Drive().Stat(`C:\secret`); info.Access != host.AccessAdministrators || info.Size != 7 {
		t.Errorf("got %+v", info)
	}
	r.requireError(add(`C:\none\log`, "x"), host.ErrNotExist)
	_, free := r.Drive().Space()
	restore := r.FillDisk(1)
	r.requireError(add(`C:\log`, "xx"), host.ErrDiskFull)
	restore()
	if _, now := r.Drive().Space(); now != free {
		t.Errorf("%d bytes were lost", free-now)
	}
	if data, _ := r.Drive().ReadFile(`C:\log`); string(data) != "one two" {
		t.Errorf("got %q", data)
	}
}
