//go:build windows

package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
)

func TestListener(t *testing.T) {
	name := fmt.Sprintf(`\\.\pipe\wmco-lab-test-%d`, os.Getpid())
	listener, err := Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				accepted <- err
				return
			}
			go func() {
				defer connection.Close()
				_, _ = io.Copy(connection, connection) // The client checks the echo.
			}()
		}
	}()
	t.Run("clients of go-winio talk to it, several at once", func(t *testing.T) {
		var connections []net.Conn
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			connection, err := winio.DialPipeContext(ctx, name)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			connections = append(connections, connection)
		}
		for i, connection := range connections {
			sent := fmt.Sprint("hello ", i)
			got := make([]byte, len(sent))
			_, errWrite := connection.Write([]byte(sent))
			_, errRead := io.ReadFull(connection, got)
			if err := errors.Join(errWrite, errRead); err != nil || string(got) != sent {
				t.Errorf("got %q, error %v", got, err)
			}
		}
	})
	t.Run("a closed one accepts nobody", func(t *testing.T) {
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got error %v", err)
		}
	})
}
