package remote_test

import (
	"io"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// A job that is canceled in the moment in which its file session is open has two readers of that session. Each must notice the end.
func TestTheEndOfASessionReachesAllItsReaders(t *testing.T) {
	noLeaks(t)
	key := newKey(t)
	c := newServer(t, key).connect(&remote.Dialer{}, key)
	output, err := c.Output(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 2)
	for range cap(ended) {
		go func() {
			_, _ = io.Copy(io.Discard, output)
			ended <- struct{}{}
		}()
	}
	time.Sleep(20 * time.Millisecond) // both wait; one that comes later finds the end, which tests less
	c.Close()
	waitFor(t, "both readers to end", func() bool { return len(ended) == cap(ended) })
}
