package main

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/windows"
)

// openHost returns access to the local machine.
func openHost() (host.Host, error) { return windows.Open() }
