#!/usr/bin/env bash
# Writes, creates or deletes a MachineSet for Windows with the values of the cluster that KUBECONFIG names. It needs Go, and neither oc nor
# kubectl. `hack/machineset.sh --help` says what it takes; docs/machinesets.md is the guide.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Built there and started here: MachineSet.yaml belongs into the caller's folder.
CGO_ENABLED=0 GOWORK=off GOFLAGS='-buildvcs=false -mod=readonly' \
  go -C "$root" build -o "$root/build/machineset" ./hack/machineset
exec "$root/build/machineset" "$@"
