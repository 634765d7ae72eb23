package remote_test

import (
	"io"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// A job canceled at the moment when its file session opens has two readers of that session. Both must detect the end.
func TestSession_EndReachesAllReaders(t *testing.T) {
	noLeaks(t)
	key := newKey(t)
	c := newServer(t, key).mustConnect(&remote.Dialer{}, key)
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
	time.Sleep(20 * time.Millisecond) // both wait: a later reader finds the end, which tests less
	c.Close()
	waitFor(t, "both readers to end", func() bool { return len(ended) == cap(ended) })
}
