package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/logs"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const (
	logDirectory = `C:\var\log\wicd`
	serviceLog   = logDirectory + `\windows-instance-config-daemon.exe.INFO`
)

// restartAgent stops the agent's service, calls between, and starts the service.
func (r *rig) restartAgent(between func()) {
	r.Helper()
	r.must(r.Host().Services.Stop(r.ctx, nodespec.ServiceAgent))
	between()
	n := r.countEntries("ready", nodespec.ServiceAgent)
	r.must(r.Host().Services.Start(r.ctx, nodespec.ServiceAgent))
	r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.countEntries("ready", nodespec.ServiceAgent) > n }))
}

// logNames returns the names in the directory of the service's log.
func (r *rig) logNames() []string {
	r.Helper()
	infos, err := r.Drive().ReadDir(logDirectory)
	r.must(err)
	var names []string
	for _, info := range infos {
		if !strings.HasSuffix(info.Name, ".wmco-tmp") { // the service is writing
			names = append(names, info.Name)
		}
	}
	return names
}

func TestServiceLog(t *testing.T) {
	t.Parallel()
	t.Run("lines are added to what is there", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		before := r.readLog()
		r.restartAgent(func() {})
		if after := r.readLog(); !strings.HasPrefix(after, before) || strings.Count(after, "runs as a service") != 2 {
			t.Errorf("got %q", after)
		}
	})
	t.Run("a full file gets another name, and the youngest of those are kept", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		full := strings.Repeat("an old line\r\n", 100_000)
		for i := range logs.MaxFiles + 3 {
			r.restartAgent(func() {
				r.must(r.Drive().WriteFile(serviceLog, []byte(fmt.Sprint(i, "\r\n", full))))
				r.ticking.Step(time.Second)
			})
		}
		names := r.logNames()
		if len(names) != logs.MaxFiles+1 {
			t.Fatalf("got %q", names)
		}
		if log := r.readLog(); len(log) > 1000 || !strings.Contains(log, "runs as a service") {
			t.Errorf("the new log has %d bytes", len(log))
		}
		oldest, err := r.Drive().ReadFile(logDirectory + `\` + names[0])
		r.must(err)
		if !strings.HasPrefix(string(oldest), "3\r\n") {
			t.Errorf("the oldest that was kept is %.10q", oldest)
		}
	})
	t.Run("a file with another name is removed when it is old, and others' files never", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		for _, name := range []string{"windows-instance-config-daemon.exe-20260101-120000.INFO", "wicd-notes.log", "wicd-crash.log", "other-20260101-120000.log"} {
			r.must(r.Drive().WriteFile(logDirectory+`\`+name, []byte("old")))
		}
		r.restartAgent(func() {})
		if got := r.logNames(); len(got) != 5 {
			t.Errorf("too early: %q", got)
		}
		r.restartAgent(func() { r.ticking.Step(logs.MaxFileAge + time.Hour) })
		want := "other-20260101-120000.log wicd-crash.log wicd-notes.log windows-instance-config-daemon.exe.INFO"
		if got := strings.Join(r.logNames(), " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("a full file that another program holds grows on", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		var release func()
		r.restartAgent(func() {
			r.must(r.Drive().WriteFile(serviceLog, []byte(strings.Repeat("an old line\r\n", 100_000))))
			var err error
			release, err = r.HoldFile(serviceLog)
			r.must(err)
		})
		release()
		r.restartAgent(func() {})
		if log := r.readLog(); strings.Count(log, "runs as a service") != 2 {
			t.Errorf("a line is lost: %q", log)
		}
	})
	t.Run("lines wait for a folder that is not there", func(t *testing.T) {
		t.Parallel()
		r := newNodeRig(t)
		r.must(r.Drive().RemoveAll(logDirectory))
		r.advanceTime(timeouts.DriftCheckInterval)
		if log := r.readLog(); !strings.Contains(log, "MakeDirectory "+logDirectory) {
			t.Errorf("got %q", log)
		}
	})
}
