package wine

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

func TestUsers(t *testing.T) {
	for name, test := range map[string]struct {
		uidMap string
		all    bool
	}{
		"the machine's own user namespace": {"         0          0 4294967295\n", true},
		"one user's":                       {"         0       1000          1\n", false},
		"a rootless container's":           {"0 1000 1\n1 100000 65536\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hasAllUsers(test.uidMap); got != test.all {
				t.Errorf("all users: %t, want %t", got, test.all)
			}
		})
	}
}

func TestCanMount(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		may    bool
	}{
		"root of a machine":              {"Name:\tgo\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n", true},
		"root of an ordinary container":  {"Name:\tgo\nCapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\n", false},
		"one that may mount and no more": {"CapEff:\t0000000000200000\n", false},
		"what is no status":              {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := canMount(test.status); got != test.may {
				t.Errorf("may mount: %t, want %t", got, test.may)
			}
		})
	}
}

func TestCheckObtainable(t *testing.T) {
	for name, test := range map[string]struct {
		programs []string
		lacking  string
	}{
		"Debian installs what is missing":          {[]string{"apt-get"}, ""},
		"another one that has both tools":          {[]string{"mmdebstrap", standin.Compiler}, ""},
		"another one without the compiler says so": {[]string{"mmdebstrap"}, standin.Compiler},
		"another one without mmdebstrap says so":   {[]string{standin.Compiler}, "mmdebstrap"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkObtainable(func(program string) (string, error) {
				if slices.Contains(test.programs, program) {
					return "/usr/bin/" + program, nil
				}
				return "", exec.ErrNotFound
			})
			if (err == nil) != (test.lacking == "") || err != nil && !strings.Contains(err.Error(), test.lacking) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		options      Options
		version, ubr string
	}{
		"Windows Server 2022 unless another is asked for": {Options{Name: "identity-2022", Address: hostAddress(50)},
			"10.0.20348 type 3", "0x2a9"},
		"Windows Server 2019": {Options{Name: "identity-2019", Address: hostAddress(51),
			System: WindowsServer2019()}, "10.0.17763 type 3", "0x1730"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, test.options)
			if got := run(t, h, `C:\guest.exe version`); got != test.version {
				t.Errorf("the API says %s, want %s", got, test.version)
			}
			if got := run(t, h, `reg query "HKLM\Software\Microsoft\Windows NT\CurrentVersion" /v UBR`); !strings.HasSuffix(strings.TrimSpace(got), test.ubr) {
				t.Errorf("the registry says %s, want %s", got, test.ubr)
			}
		})
	}
}

func TestHosts_ShareNetwork(t *testing.T) {
	other := newHost(t, Options{Name: "other", Address: hostAddress(61)})
	h := newHost(t, Options{Name: "one", Address: hostAddress(60),
		Names: map[string]netip.Addr{"api-int.example.com": hostAddress(61)}})
	t.Run("reach each other, by address and by name", func(t *testing.T) {
		for _, target := range []string{other.Address(), "api-int.example.com:22"} {
			if got := run(t, h, `C:\guest.exe dial `+target); !strings.HasPrefix(got, "SSH-2.0-OpenSSH_for_Windows") {
				t.Errorf("%s greets with %s", target, got)
			}
		}
	})
	t.Run("have different addresses", func(t *testing.T) {
		if h, err := New(t.Context(), Options{Base: base, Name: "third", Address: hostAddress(61)}); err == nil ||
			!strings.Contains(err.Error(), "in use") {
			t.Errorf("got %v", err)
			_ = h.Close()
		}
	})
	t.Run("keep their drives when the plug is pulled, and are off until they are started", func(t *testing.T) {
		run(t, other, `echo kept> C:\kept.txt`)
		if err := other.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Connect(t.Context()); err == nil {
			t.Error("it can still be logged in to")
		}
		if err := other.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := run(t, other, `type C:\kept.txt`); got != "kept" {
			t.Errorf("the file says %q", got)
		}
		if got := other.Boots(); got != 2 {
			t.Errorf("it came up %d times", got)
		}
	})
}

// The operator's own SSH client must work with a Wine host.
func TestOperatorConnection(t *testing.T) {
	key := newKey(t)
	h := newHost(t, Options{Name: "operated", Address: hostAddress(70),
		AuthorizedKeys: []ssh.PublicKey{key.Signer().PublicKey()}})
	c, err := new(remote.Dialer).Connect(t.Context(), remote.Target{Instance: "operated", Address: hostAddress(70).String(),
		User: "Administrator", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	agent := remote.Agent{SHA256: strings.Repeat("a", 64), Size: 3}
	path := nodespec.AgentPath(agent.SHA256)
	for i, content := range []string{"one", "two"} {
		if err := c.Upload(t.Context(), path, agent.Size, strings.NewReader(content), nil); err != nil {
			t.Fatalf("upload %d: %v", i+1, err)
		}
		if exists, err := c.Has(t.Context(), path, agent.Size); err != nil || !exists {
			t.Errorf("after upload %d: it is there: %t, %v", i+1, exists, err)
		}
	}
	if got := run(t, h, "type "+path); got != "two" {
		t.Errorf("the file has %q", got)
	}
}

func newKey(t *testing.T) sshkey.Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := sshkey.Parse(pem.EncodeToMemory(block))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
