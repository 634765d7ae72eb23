// Package namespace runs the present program again in its own Linux namespaces, without root: with its own addresses,
// ports and names, and with processes that all end with it.
//
// Inside, the program is process 1 and may do what root may: its network has the loopback interface with the addresses
// that were asked for, on which any port can be listened to; /etc/hosts holds the names that were asked for, and no DNS
// server answers. Files that are passed in keep their nature: a listening socket from outside still accepts connections
// from outside.
package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// Config describes the inside.
type Config struct {
	// Addresses are IPv4 addresses on the loopback interface, besides 127.0.0.1.
	Addresses []netip.Addr `json:"addresses"`
	// Names are the addresses of names, for /etc/hosts.
	Names map[string]netip.Addr `json:"names"`
	// HostName is what the machine calls itself inside.
	HostName string `json:"hostName"`
	// Grace is how long the inside may take to end after it was asked to. Zero: 10 seconds.
	Grace time.Duration `json:"grace"`
	// Files are handed in. They stay the caller's to close.
	Files []*os.File `json:"-"`
	// Environ is added to the environment, as "NAME=value".
	Environ []string `json:"-"`
}

// variable carries the configuration into the namespaces; that it is set says that this is the inside.
const variable = "WMCO_LAB_NAMESPACE"

// The inherited files, after the standard three.
const (
	lifelineFD = 3 + iota // is at its end when the outside has ended or asks for the end
	reportFD              // takes a failure of the setup, or nothing
	firstFileFD
)

const defaultGrace = 10 * time.Second

// ErrUnavailable says that this machine does not let the program make namespaces. The error around it names the
// setting.
var ErrUnavailable = errors.New("this machine lets this user make no namespaces")

// inherited is what the inside needs to know.
type inherited struct {
	Config
	Dir   string `json:"dir"`
	Files int    `json:"files"`
}

// setupFailure is what the inside reports when it cannot be set up.
type setupFailure struct {
	Message string `json:"message"`
	// Forbidden is set when the machine forbids it.
	Forbidden bool `json:"forbidden"`
}

func (i inherited) encode() (string, error) {
	data, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of the namespace: %w", err)
	}
	return variable + "=" + string(data), nil
}

func decode(value string) (inherited, error) {
	var i inherited
	if err := json.Unmarshal([]byte(value), &i); err != nil {
		return i, fmt.Errorf("read %s: %w", variable, err)
	}
	if i.Grace == 0 {
		i.Grace = defaultGrace
	}
	return i, nil
}

// Inside reports whether this process was started by Start.
func Inside() bool { return os.Getenv(variable) != "" }
