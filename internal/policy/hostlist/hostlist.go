// Package hostlist defines the form of the entries in the ConfigMap windows-instances: addresses, user names, and the
// names of the WindowsInstances. The package does not access the cluster and resolves no names.
package hostlist

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Entry is one host in the ConfigMap windows-instances.
type Entry struct {
	Address  string
	Username string
}

// ParseEntry parses one key and value of the ConfigMap windows-instances: <IPv4 address or DNS name>:
// username=<user>. White space around the value, as added by YAML block scalars, is tolerated.
func ParseEntry(key, value string) (Entry, error) {
	if err := ValidateAddress(key); err != nil {
		return Entry{}, err
	}
	name, username, found := strings.Cut(strings.TrimSpace(value), "=")
	if !found || name != "username" {
		return Entry{}, errors.New("the value must be username=<user>, with the user that the operator logs in as")
	}
	if err := ValidateUsername(username); err != nil {
		return Entry{}, err
	}
	return Entry{Address: key, Username: username}, nil
}

// ValidateAddress accepts an IPv4 address of a single host, or a DNS name.
func ValidateAddress(address string) error {
	if ip, err := netip.ParseAddr(address); err == nil {
		return validateIP(ip)
	}
	if ipv4Form.MatchString(address) {
		return fmt.Errorf("%q is not an IPv4 address: each of its four numbers must be 0 to 255, without leading zeros",
			address)
	}
	name := strings.ToLower(address)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || numberForm.MatchString(name) {
		return fmt.Errorf("%q is neither an IPv4 address nor a DNS name", address)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return fmt.Errorf("%q cannot be the address of a Windows host: it refers to the machine that resolves it",
			address)
	}
	return nil
}

var (
	ipv4Form = regexp.MustCompile(`^[0-9.]+$`)
	// numberForm matches a name that some resolvers interpret as an IPv4 address in another form. Source: URL
	// Standard, "ends in a number".
	numberForm = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

func validateIP(ip netip.Addr) error {
	switch {
	case !ip.Is4():
		return fmt.Errorf("%s is an IPv6 address: hosts are reached by IPv4 address or DNS name", ip)
	case ip.IsLoopback(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), thisNetwork.Contains(ip), reserved.Contains(ip):
		return fmt.Errorf("%s cannot be the address of a Windows host: it is a loopback, link-local, multicast, broadcast, reserved or unspecified address", ip)
	}
	return nil
}

// Networks without hosts. Source: RFC 6890, section 2.2.2. The last address of the reserved network is the broadcast
// address.
var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	reserved    = netip.MustParsePrefix("240.0.0.0/4")
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// InstanceName returns the name of the WindowsInstance of a key: readable, and unique by a short hash of the full
// key.
func InstanceName(key string) string { return instanceName(key, 50, 4) }

// LongInstanceName returns the name of the WindowsInstance of a key if another instance has the InstanceName. The
// hash is long enough that no two keys share it, even if an attacker searches for such keys.
func LongInstanceName(key string) string { return instanceName(key, 30, 16) }

// instanceName returns a name of at most 63 characters, with at most longest characters of the key and the given
// number of bytes of its hash.
func instanceName(key string, longest, bytes int) string {
	sum := sha256.Sum256([]byte(key))
	readable := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(key), "-"), "-")
	if len(readable) > longest {
		readable = strings.TrimRight(readable[:longest], "-")
	}
	if readable == "" {
		readable = "host"
	}
	return readable + "-" + hex.EncodeToString(sum[:bytes])
}
