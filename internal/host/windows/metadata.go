//go:build windows

package windows

import (
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/metadata"
)

// newMetadata returns host.Metadata over HTTP, with the Winsock calls of package net.
func newMetadata() host.Metadata { return metadata.New(metadata.Address) }
