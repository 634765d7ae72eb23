package fleet

import (
	"io"
	"net"
	"testing"
)

func TestTheWireCountsWhatTheOperatorGets(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { // answers each connection with ten times what it says
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			said, err := io.ReadAll(io.LimitReader(conn, 5))
			for range 10 {
				if err == nil {
					_, err = conn.Write(said)
				}
			}
			_ = conn.Close()
		}
	}()
	w, err := newWire("127.0.0.1", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.close() }()
	conn, err := net.Dial("tcp", w.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || len(answer) != 50 {
		t.Errorf("the answer has %d bytes, error %v", len(answer), err)
	}
	if got := w.got.Load(); got != 50 {
		t.Errorf("%d bytes are counted", got)
	}
}
