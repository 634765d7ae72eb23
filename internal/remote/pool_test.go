package remote_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

func TestPool(t *testing.T) {
	prepare := func(t *testing.T) (*server, *remote.Pool, *testClock, sshkey.Key) {
		noLeaks(t)
		key := newKey(t)
		s := newServer(t, key)
		d, clock := fakeDialer()
		pool := remote.NewPool(d)
		t.Cleanup(pool.CloseAll)
		return s, pool, clock, key
	}
	get := func(t *testing.T, pool *remote.Pool, target remote.Target) *remote.Connection {
		t.Helper()
		c, err := pool.Get(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Run("the same target gets the same connection, also from many sides at once", func(t *testing.T) {
		s, pool, _, key := prepare(t)
		var all sync.WaitGroup
		seen := make([]*remote.Connection, 10)
		for i := range seen {
			all.Go(func() { seen[i] = get(t, pool, s.newTarget(key)) })
		}
		all.Wait()
		for _, c := range seen {
			if c != seen[0] {
				t.Error("there are several connections")
			}
			pool.Release(c)
		}
		pool.Release(seen[0])
		if s.connections.Load() != 1 || pool.Len() != 1 {
			t.Errorf("%d connections, %d kept", s.connections.Load(), pool.Len())
		}
	})
	t.Run("a key that is pinned after the first contact keeps the connection", func(t *testing.T) {
		s, pool, _, key := prepare(t)
		target := s.newTarget(key)
		first := get(t, pool, target)
		hostKey := first.HostKey()
		target.HostKey = &hostKey
		if get(t, pool, target) != first {
			t.Error("it was dialed again")
		}
	})
	for name, change := range map[string]func(t *testing.T, target *remote.Target){
		"another address": func(_ *testing.T, target *remote.Target) { target.Address = "localhost" },
		"another pinned host key": func(t *testing.T, target *remote.Target) {
			public := newKey(t).Signer().PublicKey()
			target.HostKey = &remote.HostKey{Type: public.Type(), Data: public.Marshal()}
		},
		"another user": func(_ *testing.T, target *remote.Target) { target.User = "Alice" },
		"another key":  func(t *testing.T, target *remote.Target) { target.Key = newKey(t) },
	} {
		t.Run(name+" closes the old connection", func(t *testing.T) {
			s, pool, _, key := prepare(t)
			first := get(t, pool, s.newTarget(key))
			target := s.newTarget(key)
			change(t, &target)
			second, err := pool.Get(t.Context(), target)
			if second == first || err == nil && name != "another address" {
				t.Errorf("%v, %v", second == first, err)
			}
			<-first.Done()
			// Users of the old connection do not affect the new connection.
			pool.Release(first)
		})
	}
	t.Run("a lost connection is dialed again", func(t *testing.T) {
		s, pool, _, key := prepare(t)
		first := get(t, pool, s.newTarget(key))
		s.cutConnections()
		<-first.Done()
		if second := get(t, pool, s.newTarget(key)); second == first || second.Err() != nil {
			t.Error("the lost connection was given out")
		}
	})
	t.Run("a connection that nobody uses ends after a while", func(t *testing.T) {
		s, pool, clock, key := prepare(t)
		c := get(t, pool, s.newTarget(key))
		pool.Release(c)
		clock.awaitTimer(idleTimeout)
		if get(t, pool, s.newTarget(key)) != c {
			t.Error("an idle connection was not used again")
		}
		clock.Step(idleTimeout)
		if c.Err() != nil {
			t.Error("a connection in use was closed")
		}
		pool.Release(c)
		clock.passTimer(idleTimeout)
		<-c.Done()
		if pool.Len() != 0 {
			t.Error("it is still counted")
		}
	})
	t.Run("Close ends one instance's connection", func(t *testing.T) {
		s, pool, _, key := prepare(t)
		c := get(t, pool, s.newTarget(key))
		pool.Close("win-1")
		pool.Close("unknown")
		if !errors.Is(c.Err(), remote.ErrClosed) || pool.Len() != 0 {
			t.Error(c.Err())
		}
	})
	t.Run("after CloseAll there are no more connections", func(t *testing.T) {
		s, pool, _, key := prepare(t)
		c := get(t, pool, s.newTarget(key))
		pool.CloseAll()
		<-c.Done()
		if _, err := pool.Get(t.Context(), s.newTarget(key)); !errors.Is(err, remote.ErrClosed) {
			t.Error(err)
		}
	})
	// a host that hangs does not delay other hosts.
	t.Run("a host that hangs blocks only its own instance", func(t *testing.T) {
		s, pool, _, key := prepare(t)
		hung := newServer(t, key)
		hung.config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			hung.hangRequest("login", nil)
			return nil, errors.New("too late")
		}
		ctx, cancel := context.WithCancel(t.Context())
		target := hung.newTarget(key)
		target.Instance = "win-hung"
		first := inBackground(func() error {
			_, err := pool.Get(ctx, target)
			return err
		})
		<-hung.hung
		second := inBackground(func() error {
			_, err := pool.Get(ctx, target)
			return err
		})
		get(t, pool, s.newTarget(key))
		cancel()
		expectCanceled(t, first())
		expectCanceled(t, second())
	})
}
