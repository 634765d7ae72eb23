package robustness

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Verb is one run of an agent command for an operator.
type Verb struct {
	Node, Name string
	// Operator is the number of the operator with the connection.
	Operator int
	// From and To limit the time during which the operator could receive the result.
	From, To time.Time
}

// PodDisruption is an effect of an agent command on pods: the command stops a service that pods need, or restarts the
// host.
type PodDisruption struct {
	Node, Verb, What string
	At               time.Time
}

// podServices are the services that the pods on a node need.
var podServices = []string{nodespec.ServiceContainerd, nodespec.ServiceHybridOverlay, nodespec.ServiceKubeProxy}

// podDisruptions returns the effects of agent commands on pods, from the journal of a host.
func podDisruptions(node string, journal []fake.Entry) (found []PodDisruption) {
	running := map[int]string{} // commands by their process ID
	for _, e := range journal {
		if line, starts := strings.CutPrefix(e.Detail, "start "); e.Kind == fake.KindProcess && starts {
			delete(running, e.PID)
			if name := verbOf(line); name != "" && name != string(agentapi.Service) {
				running[e.PID] = name
			}
		}
		service, stops := strings.CutPrefix(e.Detail, "Stop ")
		disturbs := e.Kind == fake.KindReboot || e.Kind == fake.KindService && stops && slices.Contains(podServices, service)
		if name := running[e.PID]; disturbs && name != "" {
			found = append(found, PodDisruption{Node: node, Verb: name, What: string(e.Kind) + " " + e.Detail, At: e.Time})
		}
	}
	return found
}

// verbOf returns the command in an agent's command line; "" for other programs.
func verbOf(line string) string {
	words := strings.Fields(line)
	if len(words) < 2 || !strings.HasSuffix(words[0], `\`+nodespec.AgentProgram) {
		return ""
	}
	return words[1]
}

// operatorVerbs returns the agent commands that operators have run, from the journal of a host.
func (c *connections) operatorVerbs(node string, journal []fake.Entry) (found []Verb) {
	end := c.clock.Now()
	open := map[string][]int{} // indexes of found, by the client's address and command line
	for _, e := range journal {
		if e.Kind != winhost.KindSession {
			continue
		}
		what, session, _ := strings.Cut(e.Detail, " ")
		client, line, _ := strings.Cut(session, " ")
		name := verbOf(line)
		if name == "" {
			continue
		}
		if what == winhost.SessionEnded {
			if at := open[session]; len(at) > 0 {
				found[at[0]].To, open[session] = earlierTime(found[at[0]].To, e.Time), at[1:]
			}
			continue
		}
		if of := c.connectionAt(client, e.Time); of != nil {
			open[session] = append(open[session], len(found))
			found = append(found, Verb{Node: node, Name: name, Operator: of.operator, From: e.Time, To: earlierTime(of.closed, end)})
		}
	}
	return found
}

// earlierTime returns the earlier of two times; zero is never.
func earlierTime(x, y time.Time) time.Time {
	if x.IsZero() || !y.IsZero() && y.Before(x) {
		return y
	}
	return x
}

// connections records the connections of operators to hosts.
type connections struct {
	clock clock.PassiveClock

	mu              sync.Mutex
	byClientAddress map[string][]*connected // by the operator's address
}

// connected is a connection. closed is zero while it is open.
type connected struct {
	operator       int
	opened, closed time.Time
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// wrapDial records the connections of an operator.
func (c *connections) wrapDial(operator int, dial dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		one := &connected{operator: operator, opened: c.clock.Now()}
		c.mu.Lock()
		defer c.mu.Unlock()
		local := conn.LocalAddr().String()
		c.byClientAddress[local] = append(c.byClientAddress[local], one)
		return &recordedConn{Conn: conn, closed: sync.OnceFunc(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			one.closed = c.clock.Now()
		})}, nil
	}
}

// connectionAt returns the connection of an address at a time; nil if no operator had it.
func (c *connections) connectionAt(address string, when time.Time) *connected {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range slices.Backward(c.byClientAddress[address]) {
		if !one.opened.After(when) {
			return one
		}
	}
	return nil
}

// recordedConn records its end.
type recordedConn struct {
	net.Conn
	closed func()
}

func (c *recordedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
