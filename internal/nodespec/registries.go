package nodespec

// Registries holds the image registry configuration of nodes.
type Registries struct {
	// Hosts are the registries with a configuration, sorted by name.
	Hosts []Registry
	// OnlyAllowed is true if the cluster has a list of allowed registries. Images of other registries are not
	// pulled.
	OnlyAllowed bool
	// Credentials are the node's credentials for any pod, sorted by registry. For a registry with mirrors, only the
	// credential for the complete registry is used.
	Credentials []Credential
}

// Registry is the host in image names, with its pull configuration.
type Registry struct {
	// Host has the form used in image names: registry.example.com or registry.example.com:5000.
	Host string
	// Mirrors are tried in this order before the registry itself.
	Mirrors []Mirror
	// NeverContact is true if images may be pulled from the mirrors only.
	NeverContact bool
	// Blocked is true if no image of the registry may be pulled.
	Blocked bool
	// Allowed is true if the registry is in the cluster's list of allowed registries (see Registries.OnlyAllowed).
	Allowed bool
	Endpoint
}

// Mirror is another location of a registry's images.
type Mirror struct {
	// Host is the mirror's host. Path is the prefix of repository names on the mirror; empty for none.
	Host, Path string
	// Tags is true if the mirror also serves tags, and not only digests.
	Tags bool
	// Authorization is base64 of user:password for the mirror; empty if the mirror requires none.
	Authorization Secret
	Endpoint
}

// Endpoint holds the connection settings of a host.
type Endpoint struct {
	// Insecure is true if the host's certificate is not verified, and plain HTTP is used for hosts without TLS.
	Insecure bool
	// CA verifies the host's certificate in addition to the machine's trusted authorities, in PEM; empty for none.
	CA string
}

// Credential is a user and password for a registry or a part of it.
type Credential struct {
	// Registry has the form used in a .dockerconfigjson: a host, or a host with a path.
	Registry string
	// Auth is base64 of user:password.
	Auth Secret
}
