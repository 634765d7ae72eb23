package main

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/windows"
)

// openHost gives access to the machine that the program runs on.
func openHost() (host.Host, error) { return windows.Open() }
