package wine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestCommands(t *testing.T) {
	h := newHost(t, Options{Name: "commands", Address: hostAddress(10)})
	client, err := h.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	t.Run("the exit code and both outputs are the command's", func(t *testing.T) {
		for _, code := range []int{0, 1, 255, 3010} {
			got, err := Exec(client, fmt.Sprintf(`C:\guest.exe exit %d`, code))
			if want := (Result{Stdout: "to stdout\n", Stderr: "to stderr\n", ExitCode: code}); err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		}
	})
	t.Run("cmd.exe reads the line", func(t *testing.T) {
		for line, want := range map[string]string{
			`echo %OS% $PSHOME`:                 "Windows_NT $PSHOME",
			`echo %USERNAME% on %COMPUTERNAME%`: "Administrator on COMMANDS",
			`echo one&& echo two`:               "one\r\ntwo",
			`ver | C:\guest.exe echo`:           "\r\nMicrosoft Windows 10.0.20348",
		} {
			if got, err := Exec(client, line); err != nil || strings.TrimRight(got.Stdout, "\r\n") != want {
				t.Errorf("%s: got %+v, %v", line, got, err)
			}
		}
	})
	t.Run("arguments arrive as they are quoted", func(t *testing.T) {
		for line, want := range map[string][]string{
			`C:\guest.exe args plain --spec C:\k\wicd\inbox\spec.json`: {"plain", "--spec", `C:\k\wicd\inbox\spec.json`},
			`"C:\guest.exe" args "two words" "C:\Program Files\x"`:     {"two words", `C:\Program Files\x`},
			`C:\guest.exe args "c & d" ^& \"e\"`:                       {"c & d", "&", `"e"`},
		} {
			var args []string
			got, err := Exec(client, line)
			if err == nil {
				err = json.Unmarshal([]byte(got.Stdout), &args)
			}
			if err != nil || fmt.Sprintf("%q", args) != fmt.Sprintf("%q", want) {
				t.Errorf("%s: got %q, %v", line, args, err)
			}
		}
	})
	t.Run("an unknown command fails", func(t *testing.T) {
		if got, err := Exec(client, "no-such-command"); err != nil || got.ExitCode == 0 || got.Stderr == "" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("output comes while the command runs, and input goes to it", func(t *testing.T) { testConversation(t, client) })
	t.Run("a megabyte goes in and comes out", func(t *testing.T) {
		session, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		text := strings.Repeat("0123456789abcde\n", 64<<10)
		session.Stdin = strings.NewReader(text)
		if got, err := session.Output(`C:\guest.exe echo`); err != nil || string(got) != text {
			t.Errorf("got %d bytes of %d, %v", len(got), len(text), err)
		}
	})
	t.Run("sessions run side by side on one connection", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				if got, err := Exec(client, fmt.Sprintf(`C:\guest.exe exit %d`, i)); err != nil || got.ExitCode != i {
					t.Errorf("got %+v, %v; want exit code %d", got, err, i)
				}
			})
		}
		group.Wait()
	})
	t.Run("what the session started ends with it", func(t *testing.T) { testSessionEnd(t, h, client) })
	t.Run("programs that Wine only pretends to have fail and are written down", func(t *testing.T) { testRefused(t, h, client) })
	t.Run("a command takes this long", func(t *testing.T) {
		const n = 10
		start := time.Now()
		for range n {
			if _, err := Exec(client, "ver"); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%v", time.Since(start)/n)
	})
}

func testConversation(t *testing.T, client *ssh.Client) {
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	stdin, err := session.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := session.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start(`C:\guest.exe count`); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	for n := 1; n <= 3; n++ {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("%d\n", n) {
			t.Fatalf("line %d is %q, %v", n, line, err)
		}
		if _, err := io.WriteString(stdin, "on\n"); err != nil {
			t.Fatal(err)
		}
	}
	_ = stdin.Close()
	if err := session.Wait(); err != nil {
		t.Error(err)
	}
}

// testSessionEnd starts a command with a child that never ends, and closes the session.
func testSessionEnd(t *testing.T, h *Host, client *ssh.Client) {
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start(`C:\guest.exe spawn C:\child.pid`); err != nil {
		t.Fatal(err)
	}
	file, err := h.Path(`C:\child.pid`)
	if err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, "the child writes its process id", func() bool {
		content, err := os.ReadFile(file)
		return err == nil && len(content) > 0
	})
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alive := func() bool { return run(t, h, `C:\guest.exe alive `+string(pid)) == "true" }
	if !alive() {
		t.Fatalf("process %s is not there", pid)
	}
	if err := session.Close(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	awaitCondition(t, "the child ends", func() bool { return !alive() })
}

func testRefused(t *testing.T, h *Host, client *ssh.Client) {
	lines := []string{
		`powershell -NoProfile -Command "Get-Service kubelet"`, "netsh advfirewall show allprofiles",
		"dism /Online /Get-Features", "schtasks /query",
		`icacls C:\k`, "setx A B", "certutil -store", "wevtutil el", "shutdown /r /t 0", "sc query",
	}
	for _, line := range lines {
		if got, err := Exec(client, line); err != nil || got.ExitCode != 87 ||
			!strings.Contains(got.Stderr, "no real Windows") {
			t.Errorf("%s: got %+v, %v", line, got, err)
		}
	}
	refused, err := h.Refused()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		if i >= len(refused) || refused[i] != line {
			t.Fatalf("written down is %q, want %q", refused, lines)
		}
	}
}

// awaitCondition waits until a condition is true.
func awaitCondition(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestLogin(t *testing.T) {
	signer := newSigner(t)
	h := newHost(t, Options{Name: "login", Address: hostAddress(11), Users: []string{"Administrator", "core"},
		AuthorizedKeys: []ssh.PublicKey{signer.PublicKey()}})
	login := func(user string, key ssh.Signer) error {
		client, err := ssh.Dial("tcp", h.Address(), &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(h.HostKey()),
		})
		if err == nil {
			_ = client.Close()
		}
		return err
	}
	t.Run("every administrator logs in with the authorized key, in any case", func(t *testing.T) {
		for _, user := range []string{"Administrator", "core", "administrator"} {
			if err := login(user, signer); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		}
	})
	t.Run("another user or another key is refused", func(t *testing.T) {
		if login("guest", signer) == nil {
			t.Error("guest could log in")
		}
		if login("core", newSigner(t)) == nil {
			t.Error("a key that nobody authorized was taken")
		}
	})
	t.Run("a key that is added later is taken at once, and those that were there still are", func(t *testing.T) {
		later := newSigner(t)
		for range 2 { // repeated calls, as a platform agent may do
			if err := h.AuthorizeKey("core", later.PublicKey()); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []ssh.Signer{signer, later} {
			if err := login("core", key); err != nil {
				t.Error(err)
			}
		}
		if h.AuthorizeKey("guest", later.PublicKey()) == nil {
			t.Error("a key was authorized for a user who is not there")
		}
	})
	t.Run("keys are replaced by writing the administrators' file", func(t *testing.T) {
		other := newSigner(t)
		file, err := h.Path(authorizedKeysPath)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, ssh.MarshalAuthorizedKey(other.PublicKey()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := login("core", other); err != nil {
			t.Errorf("the new key: %v", err)
		}
		if login("core", signer) == nil {
			t.Error("the old key was taken")
		}
	})
}
