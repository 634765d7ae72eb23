//go:build !windows

package main

import (
	"errors"

	"github.com/windows-machine-config/wmco/internal/host"
)

// openHost returns an error: the agent works only on Windows.
func openHost() (host.Host, error) {
	return host.Host{}, errors.New("the agent runs on Windows hosts only; this is a build for another system")
}
