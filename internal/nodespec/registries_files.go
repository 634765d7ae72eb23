package nodespec

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/windows-machine-config/wmco/internal/host"
)

const (
	// kubeletCredentialsFile is the path of the kubelet's credentials for all pods. The kubelet reloads the file.
	// Source: kubelet, SetPreferredDockercfgPath of its root directory.
	kubeletCredentialsFile = `C:\var\lib\kubelet\config.json` //nolint:gosec // G101: a path
	// defaultHostsDirectory is containerd's directory for hosts without a directory.
	defaultHostsDirectory = "_default"
	hostsFile             = "hosts.toml"
)

// Hosts that containerd contacts if no host may be contacted. The names are part of the pull error and therefore
// describe the cause. Names that end in .invalid cannot be registered (RFC 6761).
const (
	blockedServer        = "https://blocked-by-image-config.invalid"
	notAllowedServer     = "https://not-among-allowed-registries-of-image-config.invalid"
	neverContactedServer = "https://source-never-contacted-by-mirror-set.invalid"
	registryServer       = "registry-1.docker.io" // host of the images of docker.io
)

// registryFiles returns containerd's configuration of each registry, and the kubelet's credentials for registries.
func registryFiles(in Inputs) []File {
	var list []File
	for _, registry := range configuredRegistries(in) {
		list = append(list, hostFiles(registry, in.Cluster.Registries.Credentials)...)
	}
	if in.Cluster.Registries.OnlyAllowed {
		list = append(list, File{
			Path: registryPath(defaultHostsDirectory, hostsFile), Access: host.AccessInherited,
			Content: "# No other registries are allowed.\nserver = " + tomlString(notAllowedServer) + "\n",
		})
	}
	return append(list, credentialFiles(in.Cluster.Registries)...)
}

func registryDirectories(in Inputs) []Directory {
	var list []Directory
	for _, registry := range configuredRegistries(in) {
		list = append(list, newAdminDirectory(registriesDirectory+`\`+registryDirectoryName(registry.Host)))
	}
	if in.Cluster.Registries.OnlyAllowed {
		list = append(list, newAdminDirectory(registriesDirectory+`\`+defaultHostsDirectory))
	}
	return list
}

func registryPath(folder, file string) string {
	return registriesDirectory + `\` + folder + `\` + file
}

// configuredRegistries returns the hosts with a directory, in the order of directory names. Hosts without a valid
// directory name are omitted: the reader of the cluster configuration reports them.
func configuredRegistries(in Inputs) []Registry {
	registries := slices.Clone(in.Cluster.Registries.Hosts)
	if in.Cluster.Registries.OnlyAllowed {
		// No pod starts without the pause image. The operator chooses the image's registry, not a user.
		if host := pauseImageHost(in); !slices.ContainsFunc(registries, func(r Registry) bool { return r.Host == host }) {
			registries = append(registries, Registry{Host: host, Allowed: true})
		} else {
			for i := range registries {
				registries[i].Allowed = registries[i].Allowed || registries[i].Host == host
			}
		}
		for i := range registries {
			registries[i].Blocked = registries[i].Blocked || !registries[i].Allowed
		}
	}
	registries = slices.DeleteFunc(registries, func(r Registry) bool { return !IsRegistryHost(r.Host) })
	slices.SortStableFunc(registries, func(a, b Registry) int {
		return strings.Compare(registryDirectoryName(a.Host), registryDirectoryName(b.Host))
	})
	return slices.CompactFunc(registries, func(a, b Registry) bool { return a.Host == b.Host })
}

// pauseImageHost returns the registry host of the pause image; empty if the name has none.
func pauseImageHost(in Inputs) string {
	named, err := reference.ParseNormalizedNamed(pauseImage(in))
	if err != nil {
		return ""
	}
	return reference.Domain(named)
}

// hostFiles returns the files of a host. hosts.toml comes last, after the files that it references.
func hostFiles(registry Registry, credentials []Credential) []File {
	folder := registryDirectoryName(registry.Host)
	toml := hostsTOML{registry: registry, credentials: credentials}
	content := toml.String()
	list := make([]File, 0, len(toml.authorities)+1)
	for _, ca := range toml.authorities {
		list = append(list, File{Path: registryPath(folder, ca.name), Content: ca.content, Access: host.AccessInherited})
	}
	hosts := File{Path: registryPath(folder, hostsFile), Content: content, Access: host.AccessInherited}
	if toml.secret {
		hosts.Content, hosts.Secret, hosts.Access = "", Secret(content), host.AccessAdministrators
	}
	return append(list, hosts)
}

// credentialFiles returns the credentials that the kubelet sends to a registry for any pod, or no file without
// credentials. A registry that is never contacted gets no credentials, and neither does a registry with mirrors.
// containerd sends credentials from the kubelet to each host that requests credentials, including mirrors, and
// overrides the mirrors' own credentials. The kubelet could prevent this by setting the address that belongs to the
// credentials, but leaves the address empty. On Linux nodes, containers/image prevents this. Source: containerd,
// internal/cri/server/images: ParseAuth; kubelet, kuberuntime_image.go.
func credentialFiles(registries Registries) []File {
	elsewhere := func(name string) bool {
		host := credentialHost(name)
		return slices.ContainsFunc(registries.Hosts, func(r Registry) bool { return r.Host == host && (r.NeverContact || r.Blocked || len(r.Mirrors) > 0) })
	}
	auths := object{}
	for _, credential := range registries.Credentials {
		if credential.Registry != "" && isBase64(credential.Auth) && !elsewhere(credential.Registry) {
			auths[credential.Registry] = object{"auth": string(credential.Auth)}
		}
	}
	if len(auths) == 0 {
		return nil
	}
	return []File{{Path: kubeletCredentialsFile, Secret: Secret(encodeJSON(object{"auths": auths})),
		Access: host.AccessAdministrators}}
}

// credentialHost returns the image host of a credential. Docker Hub's credentials have the host name that docker
// login uses.
func credentialHost(name string) string {
	host, _, _ := strings.Cut(name, "/")
	if host == "index.docker.io" {
		return "docker.io"
	}
	return host
}

// hostsTOML writes containerd's configuration of a host. The loader, core/remotes/docker/config of containerd,
// contacts the hosts in the order of the file and then the server. The loader ignores a file that it cannot parse,
// which would allow blocked images. So no entry is written twice, and values from the cluster are validated or
// quoted.
type hostsTOML struct {
	registry    Registry
	credentials []Credential    // for all registries
	authorities []authorityFile // referenced by the text
	secret      bool            // the text contains credentials
	text        strings.Builder
}

type authorityFile struct{ name, content string }

func (h *hostsTOML) String() string {
	h.writeLine("# Images of " + h.registry.Host)
	if h.registry.Blocked {
		h.writeLine("server = " + tomlString(blockedServer))
		return h.text.String()
	}
	if h.registry.NeverContact {
		h.writeLine("server = " + tomlString(neverContactedServer))
	} else {
		h.writeServer()
	}
	for _, mirror := range distinctMirrors(h.registry.Mirrors) {
		h.writeMirror(mirror)
	}
	return h.text.String()
}

// writeServer writes the settings of the registry itself. containerd chooses the address, including the address for
// docker.io, unless the registry may lack a certificate. containerd falls back to plain HTTP only for http
// addresses, and still tries HTTPS first.
func (h *hostsTOML) writeServer() {
	if h.registry.Insecure {
		h.writeLine("server = " + tomlString("http://"+registryAddress(h.registry.Host)))
	}
	h.writeEndpoint(h.registry.Endpoint)
	if len(h.registry.Mirrors) > 0 {
		h.writeAuthorization("header", h.registryCredential())
	}
}

// registryCredential returns the credential for the registry itself, for registries without credentials in the kubelet
// (see credentialFiles). Credentials for parts of a registry can only be configured in the kubelet.
func (h *hostsTOML) registryCredential() Secret {
	whole := func(c Credential) bool {
		return credentialHost(c.Registry) == h.registry.Host && !strings.Contains(c.Registry, "/")
	}
	if i := slices.IndexFunc(h.credentials, whole); i >= 0 {
		return h.credentials[i].Auth
	}
	return ""
}

// registryAddress returns the host that serves the images of a host. Source: containerd, core/remotes/docker/config:
// ConfigureHosts.
func registryAddress(host string) string {
	if host == "docker.io" {
		return registryServer
	}
	return host
}

func (h *hostsTOML) writeMirror(mirror Mirror) {
	scheme, path := "https://", "/v2"
	if mirror.Insecure {
		scheme = "http://"
	}
	if mirror.Path != "" {
		path += "/" + mirror.Path
	}
	table := "host." + tomlString(scheme+registryAddress(mirror.Host)+path)
	h.writeLine("")
	h.writeLine("[" + table + "]")
	if mirror.Tags {
		h.writeLine(`capabilities = ["pull", "resolve"]`)
	} else {
		h.writeLine(`capabilities = ["pull"]`)
	}
	// The path is complete: containerd appends no /v2.
	h.writeLine("override_path = true")
	h.writeEndpoint(mirror.Endpoint)
	h.writeAuthorization(table+".header", mirror.Authorization)
}

// writeAuthorization writes the credentials for one host as a separate table. containerd also requests tokens with
// these credentials. Source: containerd, core/remotes/docker: WithAuthHeader.
func (h *hostsTOML) writeAuthorization(table string, credential Secret) {
	if credential == "" || !isBase64(credential) {
		return
	}
	h.secret = true
	h.writeLine("[" + table + "]")
	h.writeLine("Authorization = " + tomlString("Basic "+string(credential)))
}

// writeEndpoint writes the connection settings. An invalid authority is omitted because containerd would fail every
// pull.
func (h *hostsTOML) writeEndpoint(endpoint Endpoint) {
	if endpoint.Insecure {
		h.writeLine("skip_verify = true")
	}
	if !hasCertificate(endpoint.CA) {
		return
	}
	sum := sha256.Sum256([]byte(endpoint.CA))
	file := authorityFile{name: "ca-" + shortenDigest(hex.EncodeToString(sum[:])) + ".pem", content: endpoint.CA}
	if !slices.Contains(h.authorities, file) {
		h.authorities = append(h.authorities, file)
	}
	// A relative path starts at the directory of the file.
	h.writeLine("ca = " + tomlString(file.name))
}

func (h *hostsTOML) writeLine(text string) { h.text.WriteString(text + "\n") }

// distinctMirrors returns the valid mirrors in order, without duplicates. A mirror listed for tags and for digests
// serves both.
func distinctMirrors(mirrors []Mirror) []Mirror {
	var list []Mirror
	for _, mirror := range mirrors {
		if !isEndpointHost(mirror.Host) || !isRepositoryPath(mirror.Path) {
			continue
		}
		if i := slices.IndexFunc(list, func(m Mirror) bool {
			return registryAddress(m.Host) == registryAddress(mirror.Host) && m.Path == mirror.Path
		}); i >= 0 {
			list[i].Tags = list[i].Tags || mirror.Tags
			continue
		}
		list = append(list, mirror)
	}
	return list
}

func hasCertificate(text string) bool {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return false
		}
		if block.Type == "CERTIFICATE" && len(block.Headers) == 0 {
			if _, err := x509.ParseCertificate(block.Bytes); err == nil {
				return true
			}
		}
	}
}

func isBase64(secret Secret) bool {
	data, err := base64.StdEncoding.DecodeString(string(secret))
	return err == nil && len(data) > 0 && !strings.ContainsAny(string(secret), "\r\n")
}
