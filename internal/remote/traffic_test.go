package remote_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// traffic records the counts of a Dialer.
type traffic struct{ connected, opened, sent atomic.Int64 }

func (c *traffic) Connected()     { c.connected.Add(1) }
func (c *traffic) Opened()        { c.opened.Add(1) }
func (c *traffic) Sent(bytes int) { c.sent.Add(int64(bytes)) }

func TestTraffic_CountsConnectionsSessionsAndBytes(t *testing.T) {
	key := newKey(t)
	counted := &traffic{}
	c := newServer(t, key).mustConnect(&remote.Dialer{Traffic: counted}, key)
	if counted.connected.Load() != 1 || counted.opened.Load() != 0 || counted.sent.Load() == 0 {
		t.Errorf("after the login it is %d connections, %d sessions, %d bytes", counted.connected.Load(), counted.opened.Load(),
			counted.sent.Load())
	}
	const size = 1 << 20
	for range 2 {
		if err := c.Upload(t.Context(), `C:\k\file`, size, bytes.NewReader(make([]byte, size)), nil); err != nil {
			t.Fatal(err)
		}
	}
	if counted.connected.Load() != 1 || counted.opened.Load() != 1 {
		t.Errorf("two files in a row take %d connections and %d sessions", counted.connected.Load(), counted.opened.Load())
	}
	if sent := counted.sent.Load(); sent < 2*size || sent > 2*size*11/10 {
		t.Errorf("two files of %d bytes are %d bytes on the wire", size, sent)
	}
	if _, err := (&remote.Dialer{Traffic: counted}).Connect(t.Context(), newServer(t, newKey(t)).newTarget(key)); err == nil ||
		counted.connected.Load() != 1 {
		t.Errorf("a refused login counts as a connection, error %v", err)
	}
}
