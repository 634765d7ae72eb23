// Package examples holds the manifests that an administrator applies.
package examples

import "embed"

// Files are the manifests by name, and unattend.xml.
//
//go:embed *.yaml *.xml
var Files embed.FS
