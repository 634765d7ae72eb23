package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// NoHostAt says what an IP address is at which no Windows host can be; empty when one can. It is asked where an entry's name leads, too: who
// may list hosts may not have the operator speak with its own machine, a cloud's metadata service or the cluster's Services.
func NoHostAt(address netip.Addr, cluster nodespec.Cluster) string {
	return clusterAddress(address, &cluster)
}

// NamesAPIServer reports whether an entry names the cluster's own API server, on whose machines no Windows host can be.
func NamesAPIServer(name string, cluster nodespec.Cluster) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(apiServers(&cluster), func(server string) bool {
		label, domain, _ := strings.Cut(strings.ToLower(server), ".")
		return name == strings.ToLower(server) || (label == "api-int" || label == "api") && (name == "api-int."+domain || name == "api."+domain)
	})
}
