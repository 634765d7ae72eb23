#!/usr/bin/env bash
# Generates, applies or deletes a MachineSet for Windows with the values of the cluster in KUBECONFIG. The script runs
# `kubectl windows machineset` from a checkout, which requires Go, but neither oc, kubectl nor the plugin. See
# docs/machinesets.md.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Built in the checkout, but run in the current directory, which receives MachineSet.yaml.
CGO_ENABLED=0 GOWORK=off GOFLAGS='-buildvcs=false -mod=readonly' \
  go -C "$root" build -o "$root/build/machineset" ./cmd/kubectl-windows

case ${1---} in
  --help | -h) exec "$root/build/machineset" machineset --help ;;
  -*) # only flags, or no arguments
    exec "$root/build/machineset" machineset generate --file=MachineSet.yaml "$@" ;;
  delete) shift && exec "$root/build/machineset" machineset delete --yes "$@" ;;
  *) # apply, or a usage error
    exec "$root/build/machineset" machineset "$@" ;;
esac
