package winhost

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// commandOutput is the output of a command. A fault may cut the connection at a given offset.
type commandOutput struct {
	host    *Host
	wire    *wireConn
	line    string
	channel io.Writer
	kill    context.CancelFunc // ends the command

	mu      sync.Mutex
	written int64
}

// Write implements io.Writer. Output written at the time of the cut still arrives. After the end of the session, a
// command that will be killed can still write, because the server reads the output until the kill. A command that
// survives has a broken pipe.
func (o *commandOutput) Write(b []byte) (int, error) {
	n, err := o.channel.Write(b)
	survives := o.host.faults.findActive(VerbSurvivesSession) != nil
	if err != nil && !survives {
		n, err = len(b), nil
	}
	o.mu.Lock()
	o.written += int64(n)
	written := o.written
	o.mu.Unlock()
	if o.host.faults.shouldCutCommand(o.line, written) {
		o.cutConnection(survives)
	}
	return n, err
}

// cutConnection cuts the connection. Unless the command survives, it performs no further action after this write.
func (o *commandOutput) cutConnection(survives bool) {
	before := endedProcesses(o.host.machine)
	_ = o.wire.Close() // intended
	if survives {
		return
	}
	o.kill()
	// An error means that the server was stopped, which ends the command as well.
	_ = o.host.machine.WaitFor(o.host.running, func(m *fake.Machine) bool { return endedProcesses(m) > before })
}

func endedProcesses(m *fake.Machine) int {
	return len(m.Journal().Entries(func(entry fake.Entry) bool {
		return entry.Kind == fake.KindProcess && !strings.HasPrefix(entry.Detail, "start ")
	}))
}

// shouldCutCommand reports, once, that the connection of a command must be cut after this amount of output.
func (f *faults) shouldCutCommand(line string, written int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, each := range f.active {
		switch {
		case each.fault != VerbKilledWithSession && each.fault != VerbSurvivesSession:
		case each.fault == VerbSurvivesSession && each.parameters.Bytes == 0: // cuts nothing itself
		case each.spent || written == 0 || written < each.parameters.Bytes ||
			!strings.Contains(line, each.parameters.Command):
		default:
			each.spent = true
			return true
		}
	}
	return false
}
