// Package examples holds the manifests that an administrator applies.
package examples

import "embed"

// Files are the manifests by name.
//
//go:embed *.yaml
var Files embed.FS
