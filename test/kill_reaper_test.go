package test

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

var errStruck = errors.New("killed by the test")

// reaper kills operators. Hosts that come to a boundary that nobody was killed at yet stand still there, until no other comes; then
// the operator dies under all of them at once, and another takes its place.
type reaper struct {
	*testing.T
	rig     *rig.Rig
	watches map[string]*hostWatch // by what windows-instances lists the host as

	mu       sync.Mutex
	table    map[string]bool // boundaries, and whether an operator was killed there
	learning bool            // boundaries are entered into the table, and nobody is killed
	life     *life
	standing map[string]bool // hosts and requests that stand at a boundary
	arrived  chan struct{}
	lives    int
}

// life is one operator's.
type life struct {
	over     chan struct{} // closed at the kill: from then on nothing that it does reaches anybody
	operator *rig.Operator
}

func (l *life) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

func newReaper(t *testing.T) *reaper {
	return &reaper{T: t, table: map[string]bool{}, standing: map[string]bool{}, arrived: make(chan struct{}, 1), watches: map[string]*hostWatch{}}
}

// attach has the agents of all hosts stand still at boundaries. Where verbs die with their sessions, the kill comes exactly there; where
// they live on, the agent goes on alone.
func (k *reaper) attach(r *rig.Rig) {
	k.rig = r
	for _, h := range r.Hosts() {
		listed, _ := h.Entry()
		k.watches[listed] = &hostWatch{host: h}
		if survives(h) {
			h.Inject(winhost.VerbSurvivesSession, winhost.Parameters{})
		}
		h.Machine().OnOperation(func(o fake.Operation) error {
			label := agentBoundary(h.Machine(), o)
			if label == "" || !k.stand(nil, h.Options.Name, label) || survives(h) {
				return nil
			}
			ctx, cancel := context.WithTimeout(k.Context(), limit)
			defer cancel()
			if err := h.Machine().WaitFor(ctx, func(*fake.Machine) bool { return !o.Process.Alive() }); err != nil {
				k.Errorf("%s: the verb did not die with its session: %v", label, err)
			}
			return errStruck
		})
	}
}

// survives tells whether verbs of the host live on without their session: every second host's do.
func survives(h *rig.Host) bool { return strings.HasSuffix(h.Options.DNSName, ".example.com") }

// start starts the next operator.
func (k *reaper) start() {
	l := &life{over: make(chan struct{})}
	o, err := k.rig.RunOperator(func(c *operator.Config) {
		c.RESTConfig = rest.CopyConfig(c.RESTConfig)
		c.RESTConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return &mortalAPI{k, l, next} })
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if l.ended() {
				return nil, errStruck
			}
			watch := k.watchOf(address)
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &mortalConn{Conn: conn, reaper: k, life: l, watch: watch}, nil
		}
	})
	if err != nil {
		k.Fatal(err)
	}
	l.operator = o
	k.mu.Lock()
	defer k.mu.Unlock()
	k.life = l
	k.lives++
}

// watchOf is what follows the host that is dialled, from now on.
func (k *reaper) watchOf(address string) *hostWatch {
	name, _, _ := strings.Cut(address, ":")
	w := k.watches[name]
	w.reset()
	return w
}

// stand stands at the first boundary that is not used up, until the operator dies; without one it returns false at once. A nil life
// is the present one.
func (k *reaper) stand(l *life, who string, labels ...string) bool {
	k.mu.Lock()
	if l == nil {
		l = k.life
	}
	fresh := false
	for _, label := range labels {
		used, known := k.table[label]
		if k.learning && !known {
			k.table[label] = false
		}
		if !k.learning && known && !used && l != nil && !l.ended() {
			k.table[label], fresh = true, true
			k.Logf("life %d: %s at %s", k.lives, who, label)
		}
	}
	if !fresh {
		k.mu.Unlock()
		return false
	}
	k.standing[who] = true
	k.mu.Unlock()
	select {
	case k.arrived <- struct{}{}:
	default:
	}
	<-l.over
	return true
}

// quiet is how long nobody has come to a boundary when the operator is killed.
const quiet = 150 * time.Millisecond

// run kills operators wherever a host stands until done is closed.
func (k *reaper) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-k.arrived:
		}
		timer := time.NewTimer(quiet)
		for waiting := true; waiting; {
			select {
			case <-k.arrived:
				timer.Reset(quiet)
			case <-timer.C:
				waiting = false
			}
		}
		k.strike()
		k.start()
	}
}

// strike kills the operator.
func (k *reaper) strike() {
	k.mu.Lock()
	l := k.life
	k.standing = map[string]bool{}
	close(l.over)
	k.mu.Unlock()
	l.operator.Kill()
}

// frozen tells whether time stands still: while somebody stands at a boundary no limit passes.
func (k *reaper) frozen() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.standing) > 0
}

// mortalAPI is the way to the API server.
type mortalAPI struct {
	*reaper
	life *life
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The operator dies after a change was made and before it knows.
func (a *mortalAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	if a.life.ended() {
		return nil, errStruck
	}
	response, err := a.next.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	if a.stand(a.life, request.URL.Path, apiBoundaries(request)...) || a.life.ended() {
		_ = response.Body.Close() // nobody reads it
		return nil, errStruck
	}
	return response, nil
}

// mortalConn is a connection to a host.
type mortalConn struct {
	net.Conn
	reaper *reaper
	life   *life
	watch  *hostWatch
}

// Read implements net.Conn. The operator dies after the host did something and before it knows.
func (c *mortalConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.life.ended() {
		return 0, errStruck
	}
	if c.reaper.stand(c.life, c.watch.host.Options.Name, c.watch.news()...) {
		return 0, errStruck
	}
	return n, err
}

// Write implements net.Conn.
func (c *mortalConn) Write(b []byte) (int, error) {
	if c.life.ended() {
		return 0, errStruck
	}
	return c.Conn.Write(b)
}


// learn enters the boundaries that an undisturbed operator comes to while it does the work.
func (k *reaper) learn(work func()) {
	k.Helper()
	k.setLearning(true)
	k.start()
	work()
	if err := k.life.operator.Stop(); err != nil {
		k.Fatal(err)
	}
	k.setLearning(false)
}

func (k *reaper) setLearning(learning bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.learning = learning
}

// runUntil kills operators until the work is done.
func (k *reaper) runUntil(work func(context.Context) error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), killLimit)
	defer cancel()
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = work(ctx)
	}()
	k.run(done)
	if err != nil {
		k.Fatal(err)
	}
}

// allVisited checks that there are as many boundaries as there must be, and that an operator was killed at each.
func (k *reaper) allVisited(atLeast int) {
	k.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.table) < atLeast {
		k.Errorf("only %d boundaries are known, want %d", len(k.table), atLeast)
	}
	for _, label := range slices.Sorted(maps.Keys(k.table)) {
		if !k.table[label] {
			k.Errorf("nobody was killed at: %s", label)
		}
	}
	k.Logf("%d boundaries, %d operators", len(k.table), k.lives)
}
