package remote_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// openConns counts concurrently open network connections.
type openConns struct {
	mu            sync.Mutex
	open, maxOpen int
}

func (o *openConns) dialCounted(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	o.addOpen(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { o.addOpen(-1) })}, nil
}

func (o *openConns) addOpen(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open += n
	o.maxOpen = max(o.maxOpen, o.open)
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestPool_ConnectionsLimited(t *testing.T) {
	const bound = 3
	prepare := func(t *testing.T) (*remote.Pool, *openConns, func(host int) remote.Target) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		s.agent = func(p *process) int {
			p.writeLines(helloLine(), resultLine())
			return 0
		}
		conns := &openConns{}
		pool := remote.NewPool(&remote.Dialer{Dial: conns.dialCounted, Limits: remote.Limits{MaxConnections: bound}})
		t.Cleanup(pool.CloseAll)
		return pool, conns, func(host int) remote.Target {
			target := s.newTarget(key)
			target.Instance = fmt.Sprintf("win-%d", host)
			return target
		}
	}
	t.Run("that many hosts at once keep, each in its turn", func(t *testing.T) {
		pool, conns, target := prepare(t)
		var all sync.WaitGroup
		for host := range 30 {
			all.Go(func() {
				c, err := pool.Get(t.Context(), target(host))
				if err != nil {
					t.Error(err)
					return
				}
				defer pool.Release(c)
				if _, err := c.Run(t.Context(), agentPath, "facts", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if conns.maxOpen > bound || conns.maxOpen == 0 {
			t.Errorf("%d connections were open at once", conns.maxOpen)
		}
	})
	t.Run("to which a connection that nobody uses gives way", func(t *testing.T) {
		pool, conns, target := prepare(t)
		for host := range 10 {
			c, err := pool.Get(t.Context(), target(host))
			if err != nil {
				t.Fatal(err)
			}
			pool.Release(c)
		}
		if conns.maxOpen != bound {
			t.Errorf("%d connections were open at once", conns.maxOpen)
		}
	})
	t.Run("and none is closed in use, as hosts come and go", func(t *testing.T) {
		pool, conns, target := prepare(t)
		var all sync.WaitGroup
		for worker := range bound + 1 { // each alternates between two hosts
			all.Go(func() {
				for round := range 100 {
					c, err := pool.Get(t.Context(), target((worker+round%2)%(bound+1)))
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := c.Exists(t.Context(), `C:\k`); err != nil {
						t.Error(err)
					}
					pool.Release(c)
				}
			})
		}
		all.Wait()
		if conns.maxOpen > bound {
			t.Errorf("%d connections were open at once", conns.maxOpen)
		}
	})
	t.Run("at which one waits until another is released, or the operator stops", func(t *testing.T) {
		pool, _, target := prepare(t)
		var held []*remote.Connection
		for host := range bound {
			c, err := pool.Get(t.Context(), target(host))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
		ctx, cancel := context.WithCancel(t.Context())
		connect := inBackground(func() error {
			_, err := pool.Get(ctx, target(100))
			return err
		})
		waits := inBackground(func() error {
			_, err := pool.Get(t.Context(), target(101))
			return err
		})
		cancel()
		expectCanceled(t, connect())
		pool.Release(held[0])
		if err := waits(); err != nil {
			t.Error(err)
		}
		if held[1].Err() != nil || held[2].Err() != nil {
			t.Error("a connection in use was closed")
		}
	})
}
