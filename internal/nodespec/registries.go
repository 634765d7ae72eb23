package nodespec

// Registries says how nodes get container images.
type Registries struct {
	// Hosts are the registries for which something is configured, sorted by their name.
	Hosts []Registry
	// OnlyAllowed is true where the cluster names the registries that may be used: no image of another one is pulled.
	OnlyAllowed bool
	// Credentials are those that a node uses for any pod, sorted by the registry. Of those for a registry with mirrors
	// only the one for all of it is used.
	Credentials []Credential
}

// Registry is a host that images are named after, and how to get them.
type Registry struct {
	// Host is as in an image's name: registry.example.com or registry.example.com:5000.
	Host string
	// Mirrors are tried in this order before the registry itself.
	Mirrors []Mirror
	// NeverContact is true when only the mirrors may be asked.
	NeverContact bool
	// Blocked is true when no image of it may be pulled.
	Blocked bool
	// Allowed is true when the cluster names it among those that may be used (see Registries.OnlyAllowed).
	Allowed bool
	Endpoint
}

// Mirror is another place that has the images of a registry.
type Mirror struct {
	// Host is where it is; Path is what stands before the repository's name there, empty for nothing.
	Host, Path string
	// Tags is true when it is asked for tags too, and not for digests only.
	Tags bool
	// Authorization is the user and password for the mirror, as base64 of user:password; empty when it needs none.
	Authorization Secret
	Endpoint
}

// Endpoint says how to connect to a host.
type Endpoint struct {
	// Insecure is true when its certificate is not checked, and plain HTTP is used where it has none.
	Insecure bool
	// CA verifies its certificate besides the authorities that the machine trusts, in PEM; empty for none.
	CA string
}

// Credential is a user and password for a registry or a part of it.
type Credential struct {
	// Registry is as in a .dockerconfigjson: a host, or a host with a path.
	Registry string
	// Auth is base64 of user:password.
	Auth Secret
}
