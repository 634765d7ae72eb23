package linuxns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// roleVariable selects another role of the test binary than running the tests.
	roleVariable = "NAMESPACE_TEST_ROLE"
	roleNested   = "nested"
	roleSleeper  = "sleeper"
)

// inheritedListener was opened outside.
var inheritedListener *os.File

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	switch os.Getenv(roleVariable) {
	case roleNested:
		return playNested()
	case roleSleeper:
		select {}
	}
	config := Config{
		Addresses: []netip.Addr{netip.MustParseAddr("10.9.0.5"), netip.MustParseAddr("10.9.0.6")},
		Names:     map[string]netip.Addr{"instance.example.com": netip.MustParseAddr("10.9.0.6")},
		HostName:  "lab",
	}
	if !IsInside() {
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		file, err := listener.File()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		config.Files = []*os.File{file}
		go sendGreetings(listener.Addr().String())
	}
	code, err := Main(config, func(_ context.Context, e *Environment) int {
		inheritedListener = e.Files[0]
		return m.Run()
	})
	if errors.Is(err, ErrUnavailable) {
		fmt.Printf("SKIPPED: all tests of this package: %v\n", err)
		return 0
	}
	if err != nil {
		fmt.Println(err)
	}
	return code
}

// sendGreetings connects from outside repeatedly, because the tests may run more than once.
func sendGreetings(address string) {
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.WriteString(conn, "hello from outside\n")
		_, _ = io.Copy(io.Discard, conn) // until the other side closes the connection
		_ = conn.Close()
	}
}

// playNested enters namespaces, starts a process there that never ends, and waits for its own end.
func playNested() int {
	code, err := Main(Config{GracePeriod: 30 * time.Second}, func(ctx context.Context, e *Environment) int {
		sleeper := exec.Command(os.Args[0])
		sleeper.Env = append(os.Environ(), roleVariable+"="+roleSleeper)
		sleeper.Stdout = os.Stdout // Keeps the pipe open as long as the process lives.
		if err := sleeper.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(e.Dir)
		<-ctx.Done()
		return 7
	})
	if err != nil {
		fmt.Println(err)
	}
	return code
}

func TestInside(t *testing.T) {
	t.Run("port 22 of an address can be listened to and is reached by name", func(t *testing.T) {
		listener, err := net.Listen("tcp", "10.9.0.6:22")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_, _ = io.WriteString(conn, "SSH-2.0-lab\n")
				_ = conn.Close()
			}
		}()
		conn, err := net.Dial("tcp", "instance.example.com:22")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "SSH-2.0-lab\n" {
			t.Errorf("read %q, %v", line, err)
		}
	})
	t.Run("an address that was not asked for is refused at once", func(t *testing.T) {
		if conn, err := net.DialTimeout("tcp", "10.9.0.7:22", 5*time.Second); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("dialed %v, %v", conn, err)
		}
	})
	t.Run("a name that is not known does not exist", func(t *testing.T) {
		var dnsError *net.DNSError
		if _, err := net.LookupHost("elsewhere.example.com"); !errors.As(err, &dnsError) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the host name is the one that was asked for", func(t *testing.T) {
		if name, err := os.Hostname(); err != nil || name != "lab" {
			t.Errorf("got %q, %v", name, err)
		}
	})
	t.Run("the program is the first process", func(t *testing.T) {
		if os.Getpid() != 1 {
			t.Errorf("process id %d", os.Getpid())
		}
	})
	t.Run("a socket that was opened outside accepts connections from outside", func(t *testing.T) {
		listener, err := net.FileListener(inheritedListener)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "hello from outside\n" {
			t.Errorf("read %q, %v", line, err)
		}
	})
}

func TestEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{
		{"an interrupt ends the inside, whose exit code is the program's", syscall.SIGINT, 7},
		{"when the outside is killed, every process inside ends", syscall.SIGKILL, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			nested := exec.Command(os.Args[0])
			nested.Env = append(os.Environ(), roleVariable+"="+roleNested)
			nested.Stderr = os.Stderr
			output, err := nested.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := nested.Start(); err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(output)
			dir, err := reader.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			dir = strings.TrimSpace(dir)
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("the directory of the inside: %v", err)
			}
			if err := nested.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			// The pipe reaches EOF when no process inside has it open.
			if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
				t.Errorf("then came %q, %v", rest, err)
			}
			_ = nested.Wait()
			if code := nested.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory of the inside is still there: %v", err)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	machine := func(values map[string]string) func(string) ([]byte, error) {
		return func(path string) ([]byte, error) {
			if value, ok := values[path]; ok {
				return []byte(value + "\n"), nil
			}
			return nil, fs.ErrNotExist
		}
	}
	for _, test := range []struct {
		name   string
		err    error
		values map[string]string
		want   string
	}{
		{"Debian's switch", syscall.EPERM, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"},
			"kernel.unprivileged_userns_clone=1"},
		{"no namespaces at all", syscall.ENOSPC, map[string]string{"/proc/sys/user/max_user_namespaces": "0"},
			"user.max_user_namespaces=10000"},
		{"Ubuntu's AppArmor", syscall.EACCES,
			map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
			"kernel.apparmor_restrict_unprivileged_userns=0"},
		{"a container", syscall.EPERM, map[string]string{"/proc/sys/user/max_user_namespaces": strconv.Itoa(1000)},
			"--cap-add SYS_ADMIN"},
		{"a kernel without them", syscall.EINVAL, nil, "the kernel is built without"},
	} {
		t.Run(test.name+" is named with its remedy", func(t *testing.T) {
			err := explainStart(test.err, machine(test.values))
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
