//go:build windows

package windows

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/metadata"
)

// newMetadata is host.Metadata over HTTP, on Winsock as package net uses it.
func newMetadata() host.Metadata { return metadata.New(metadata.Address) }
