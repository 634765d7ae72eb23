package remote_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/internal/remote"
)

// recordOffer returns the names of algorithms in the operator's first packet (SSH_MSG_KEXINIT, RFC 4253, 7.1), as
// visible to an on-path attacker.
func recordOffer(t *testing.T, d *remote.Dialer) []string {
	t.Helper()
	var names []string
	var readErr error
	setServer(t, d, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		go func() { _, _ = io.WriteString(conn, "SSH-2.0-x\r\n") }()
		names, readErr = readOffer(bufio.NewReader(conn))
	})
	_, err := d.Connect(t.Context(), remote.Target{Address: "10.0.0.1", User: "Administrator", Key: newKey(t)})
	if err == nil || readErr != nil || len(names) == 0 {
		t.Fatalf("%d names, %v, %v", len(names), readErr, err)
	}
	return names
}

func readOffer(r *bufio.Reader) ([]string, error) {
	if _, err := r.ReadString('\n'); err != nil {
		return nil, err
	}
	var head struct {
		Length  uint32
		Padding uint8
	}
	if err := binary.Read(r, binary.BigEndian, &head); err != nil {
		return nil, err
	}
	payload := make([]byte, int(head.Length)-1-int(head.Padding))
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, err
	}
	if payload[0] != 20 {
		return nil, errors.New("it is no SSH_MSG_KEXINIT")
	}
	var lists struct {
		Kex, HostKey, CiphersOut, CiphersIn, MACsOut, MACsIn []string
		Rest                                                 []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(payload[17:], &lists); err != nil {
		return nil, err
	}
	return slices.Concat(lists.Kex, lists.HostKey, lists.CiphersOut, lists.CiphersIn, lists.MACsOut, lists.MACsIn), nil
}

func isWeak(name string) bool {
	return name == "ssh-rsa" || name == "ssh-dss" || slices.ContainsFunc([]string{"sha1", "md5", "cbc", "3des", "arcfour",
		"rc4", "-96", "none"},
		func(part string) bool { return strings.Contains(name, part) })
}

func TestAlgorithms_WeakOfferedOnlyIfAllowed(t *testing.T) {
	t.Run("are modern ones", func(t *testing.T) {
		names := recordOffer(t, &remote.Dialer{})
		if i := slices.IndexFunc(names, isWeak); i >= 0 {
			t.Errorf("%s is offered", names[i])
		}
		for _, want := range []string{"curve25519-sha256", "ssh-ed25519", "rsa-sha2-512", "aes256-gcm@openssh.com",
			"hmac-sha2-256-etm@openssh.com"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is not offered, and so not looked at", want)
			}
		}
	})
	t.Run("are weak ones only where they are allowed, and last", func(t *testing.T) {
		legacy, err := remote.ParseLegacyAlgorithms("hmac-sha1, aes128-cbc,ssh-rsa,diffie-hellman-group14-sha1")
		if err != nil {
			t.Fatal(err)
		}
		names := recordOffer(t, &remote.Dialer{LegacyAlgorithms: legacy})
		for _, name := range names {
			if isWeak(name) && !slices.Contains(legacy, name) {
				t.Errorf("%s is offered", name)
			}
		}
		for _, name := range legacy {
			if !slices.Contains(names, name) {
				t.Errorf("%s is not offered", name)
			}
		}
		for modern, weak := range map[string]string{
			"aes256-ctr": "aes128-cbc", "hmac-sha2-512": "hmac-sha1", "rsa-sha2-256": "ssh-rsa",
			"ecdh-sha2-nistp256": "diffie-hellman-group14-sha1",
		} {
			if slices.Index(names, modern) > slices.Index(names, weak) {
				t.Errorf("%s comes before %s", weak, modern)
			}
		}
	})
	t.Run("are never those that are broken", func(t *testing.T) {
		names := recordOffer(t, &remote.Dialer{LegacyAlgorithms: []string{"arcfour", "arcfour128", "3des-cbc", "ssh-dss",
			"diffie-hellman-group1-sha1"}})
		if i := slices.IndexFunc(names, isWeak); i >= 0 {
			t.Errorf("%s is offered", names[i])
		}
	})
}

func TestParseLegacyAlgorithms(t *testing.T) {
	for list, want := range map[string][]string{
		"": nil, " , ": nil, "ssh-rsa": {"ssh-rsa"}, " hmac-sha1 ,ssh-rsa,hmac-sha1,": {"hmac-sha1", "ssh-rsa"},
	} {
		if got, err := remote.ParseLegacyAlgorithms(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %q, %v", list, got, err)
		}
	}
	for list, unknown := range map[string]string{
		"ssh-rsa,hmac-md5": "hmac-md5", "arcfour": "arcfour", "3des-cbc": "3des-cbc", "ssh-dss": "ssh-dss", "all": "all",
		"SSH-RSA": "SSH-RSA", "ssh-rsa hmac-sha1": "ssh-rsa hmac-sha1",
	} {
		_, err := remote.ParseLegacyAlgorithms(list)
		if err == nil || !strings.Contains(err.Error(), `"`+unknown+`"`) || !strings.Contains(err.Error(),
			"diffie-hellman-group14-sha1, ") {
			t.Errorf("%q: the error names neither %q nor what can be allowed: %v", list, unknown, err)
		}
	}
}

func TestAlgorithms_ErrorNamesFlagForLegacy(t *testing.T) {
	for name, c := range map[string]struct {
		configure func(*ssh.ServerConfig)
		allowed   string // in the hint; empty for no hint
	}{
		"one that may be allowed": {func(c *ssh.ServerConfig) {
			c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1}
		}, "can allow diffie-hellman-group14-sha1"},
		"one that is broken": {func(c *ssh.ServerConfig) {
			c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH1SHA1}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			s := newServer(t, key)
			c.configure(s.config)
			_, err := (&remote.Dialer{}).Connect(t.Context(), s.newTarget(key))
			expectError(t, err, remote.ReasonNoCommonAlgorithm, "update OpenSSH", c.allowed)
			hinted := strings.Contains(err.Error(), "--ssh-legacy-algorithms") &&
				strings.Contains(err.Error(), "SSH_LEGACY_ALGORITHMS")
			if hinted != (c.allowed != "") {
				t.Errorf("the flag is named: %t: %v", hinted, err)
			}
		})
	}
}
