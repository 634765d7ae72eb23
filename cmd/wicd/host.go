package main

import (
	"errors"

	"github.com/windows-machine-config/wmco/internal/host"
)

// openHost gives access to the machine that the program runs on.
func openHost() (host.Host, error) {
	return host.Host{}, errors.New("this build of the agent has no Windows implementation yet")
}
