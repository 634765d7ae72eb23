package main

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no directory":        {nil, "--dir is required"},
		"an unknown profile":  {[]string{"--dir=x", "--profile=vanilla"}, `"vanilla" is neither plain nor openshift`},
		"an unknown platform": {[]string{"--dir=x", "--platform=Mainframe"}, "is not one of None"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if err := new(flags).parse(test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDieWithParent_EndedParentIsError(t *testing.T) {
	t.Run("a parent that is not the one expected has ended", func(t *testing.T) {
		if err := dieWithParent(1 << 30); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("got %v", err)
		}
	})
}

func TestListen(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	t.Run("a port that stays somebody else's is an error", func(t *testing.T) {
		if _, err := listen(other.Addr().String(), 0); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a port that becomes free is waited for", func(t *testing.T) {
		free := make(chan error, 1)
		time.AfterFunc(50*time.Millisecond, func() { free <- other.Close() })
		listener, err := listen(other.Addr().String(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if err := <-free; err != nil {
			t.Error(err)
		}
	})
}
