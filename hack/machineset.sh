#!/usr/bin/env bash
# Writes, creates or deletes a MachineSet for Windows with the values of the cluster that KUBECONFIG names: `kubectl windows machineset` for those
# who have a checkout, and Go, but neither oc, kubectl nor the plugin. docs/machinesets.md is the guide.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Built there and started here: MachineSet.yaml belongs into the caller's folder.
CGO_ENABLED=0 GOWORK=off GOFLAGS='-buildvcs=false -mod=readonly' \
  go -C "$root" build -o "$root/build/machineset" ./cmd/kubectl-windows

case ${1---} in
  --help | -h) exec "$root/build/machineset" machineset --help ;;
  -*) # flags only, or nothing
    exec "$root/build/machineset" machineset generate --file=MachineSet.yaml "$@" ;;
  delete) shift && exec "$root/build/machineset" machineset delete --yes "$@" ;;
  *) # apply, or what the usage says is wrong
    exec "$root/build/machineset" machineset "$@" ;;
esac
