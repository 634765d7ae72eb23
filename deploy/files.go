// Package deploy holds the manifests that install the operator, a kustomize base.
package deploy

import "embed"

// Files are the manifests, with kustomization.yaml at the root.
//
//go:embed *.yaml crd/*.yaml rbac/*.yaml
var Files embed.FS
