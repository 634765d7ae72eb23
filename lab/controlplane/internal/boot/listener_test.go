package boot

import (
	"errors"
	"net"
	"testing"
)

func TestJoinedListeners(t *testing.T) {
	first, second := listen(t), listen(t)
	joined := join(first, second)

	t.Run("connections of both are accepted", func(t *testing.T) {
		for _, l := range []net.Listener{first, second} {
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := joined.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if server.LocalAddr().String() != l.Addr().String() {
				t.Errorf("accepted at %s, want %s", server.LocalAddr(), l.Addr())
			}
		}
	})

	t.Run("once closed, both are and nothing is accepted", func(t *testing.T) {
		if err := joined.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := joined.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		if _, err := net.Dial("tcp", second.Addr().String()); err == nil {
			t.Error("the second still listens")
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
