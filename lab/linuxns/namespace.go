// Package linuxns runs the current program again in new Linux namespaces, without root: with separate
// addresses, ports and names, and with processes that all end with the program.
//
// Inside, the program is process 1 with the rights of root. The network has the loopback interface with the
// requested addresses, and the program may listen on any port. /etc/hosts contains the requested names, and
// there is no DNS server. Passed files keep their properties: a listening socket from outside still accepts
// connections from outside.
package linuxns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// Config configures the inside.
type Config struct {
	// Addresses are IPv4 addresses on the loopback interface, besides 127.0.0.1.
	Addresses []netip.Addr `json:"addresses"`
	// Names maps names to addresses, for /etc/hosts.
	Names map[string]netip.Addr `json:"names"`
	// HostName is the host name inside.
	HostName string `json:"hostName"`
	// GracePeriod is the time for the inside to end after a stop request. Zero: 10 seconds.
	GracePeriod time.Duration `json:"grace"`
	// Files are passed to the inside. The caller closes them.
	Files []*os.File `json:"-"`
	// Environ is added to the environment, as "NAME=value".
	Environ []string `json:"-"`
}

// variable passes the configuration into the namespaces; the variable is only set inside.
const variable = "WMCO_LAB_NAMESPACE"

// The inherited files, after the standard three.
const (
	lifelineFD = 3 + iota // reaches EOF when the outside has ended or calls Stop
	reportFD              // receives a failure of the setup, or nothing
	firstFileFD
)

const defaultGracePeriod = 10 * time.Second

// ErrUnavailable means that this machine does not allow the program to create namespaces. The wrapping error
// names the setting.
var ErrUnavailable = errors.New("this machine lets this user make no namespaces")

// inherited is the configuration for the inside.
type inherited struct {
	Config
	Dir   string `json:"dir"`
	Files int    `json:"files"`
}

// setupFailure is the report of a failed setup inside.
type setupFailure struct {
	Message string `json:"message"`
	// Forbidden is true if the machine forbids the setup.
	Forbidden bool `json:"forbidden"`
}

func (i inherited) encodeVariable() (string, error) {
	data, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of the namespace: %w", err)
	}
	return variable + "=" + string(data), nil
}

func decodeConfig(value string) (inherited, error) {
	var i inherited
	if err := json.Unmarshal([]byte(value), &i); err != nil {
		return i, fmt.Errorf("read %s: %w", variable, err)
	}
	if i.GracePeriod == 0 {
		i.GracePeriod = defaultGracePeriod
	}
	return i, nil
}

// IsInside reports whether this process was started by Start.
func IsInside() bool { return os.Getenv(variable) != "" }
