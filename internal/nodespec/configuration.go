package nodespec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// A configuration identifies the node settings that disrupt pods when they change. These settings are the programs,
// arguments and files of services, as far as the cluster and the operator determine them. The format is a list of
// services, each with a digest: "containerd=1f0c88b2a9d4 kubelet=77d05be1c3a6". Hosts with the same settings have
// the same configuration, regardless of names, addresses, subnets and certificates.

// anyInstance replaces the instance of every host.
var anyInstance = Instance{Name: "any", NodeName: "any", NodeIP: "192.0.2.1"}

// Configuration returns the configuration that these inputs result in on every host, regardless of the instance.
func Configuration(in Inputs) (string, error) {
	in.Instance, in.PodSubnet = anyInstance, ""
	spec, err := Make(in)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, service := range spec.Services {
		if spec.isRestartDisruptive(service) {
			parts = append(parts, service.Name+"="+spec.serviceDigest(service))
		}
	}
	return strings.Join(parts, " "), nil
}

// ChangedServices returns the services with different digests in the two configurations, or none if either
// configuration is unknown.
func ChangedServices(from, to string) []string {
	if from == "" || to == "" {
		return nil
	}
	before := strings.Fields(from)
	var names []string
	for _, part := range strings.Fields(to) {
		name, _, _ := strings.Cut(part, "=")
		if !slices.Contains(before, part) {
			names = append(names, name)
		}
	}
	return names
}

// isRestartDisruptive reports whether a restart of the service, or of a dependent service that Windows stops too,
// disrupts pods.
func (s NodeSpec) isRestartDisruptive(service Service) bool {
	return service.DisruptsPods || slices.ContainsFunc(s.Services, func(other Service) bool {
		return slices.Contains(other.Dependencies, service.Name) && s.isRestartDisruptive(other)
	})
}

// serviceDigest returns a digest of all settings that cause a restart of the service when they change.
func (s NodeSpec) serviceDigest(service Service) string {
	var read []File
	for _, file := range s.Files {
		if slices.ContainsFunc(service.RestartOn, func(path string) bool { return IsSamePath(path, file.Path) }) {
			read = append(read, file)
		}
	}
	slices.SortFunc(read, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	environment := slices.Sorted(slices.Values(service.Environment))
	encoded, err := json.Marshal([]any{service.CommandLine, environment, read})
	if err != nil {
		panic("encode the configuration of service " + service.Name + ": " + err.Error()) // as in Digest
	}
	sum := sha256.Sum256(encoded)
	return shortenDigest(hex.EncodeToString(sum[:]))
}
