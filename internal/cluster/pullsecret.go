package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// PullSecret is the Secret with the credentials that all nodes of the cluster pull images with.
var PullSecret = types.NamespacedName{Namespace: "openshift-config", Name: "pull-secret"}

// notRegistry is an entry of every pull secret that is for reporting to Red Hat and no registry.
const notRegistry = "cloud.openshift.com"

// authEntry is what an entry of a .dockerconfigjson may hold. Tokens are only looked at for whether they are there.
type authEntry struct {
	Username      string          `json:"username"`
	Password      string          `json:"password"`
	Auth          string          `json:"auth"`
	IdentityToken nodespec.Secret `json:"identitytoken"`
	RegistryToken nodespec.Secret `json:"registrytoken"`
}

// readPullSecret reads the credentials for registries. Neither errors nor notices hold any part of a value. L-02
func (n *notices) readPullSecret(ctx context.Context, reader client.Reader, settings *registrySettings) error {
	secret := &corev1.Secret{}
	about, found, err := readOptional(ctx, reader, PullSecret.String(), secret, "Secret "+PullSecret.String())
	if err != nil || !found {
		return err
	}
	const field = "key " + corev1.DockerConfigJsonKey
	const remedy = " Until it is corrected, nodes keep their current credentials."
	content, found := secret.Data[corev1.DockerConfigJsonKey]
	if !found {
		return about.error(field, "the key is not there: the credentials for registries are not known."+remedy)
	}
	// The decoder's errors are not passed on: they may quote the content.
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal(content, &config) != nil || config.Auths == nil {
		return about.error(field, `it must be JSON: {"auths": {"<registry>": {"auth": "<base64 of user:password>"}}}.`+remedy)
	}
	byRegistry := map[string]nodespec.Secret{}
	for i, key := range slices.Sorted(maps.Keys(config.Auths)) {
		registry, ok := registryOfKey(key)
		if !ok {
			n.add(about, field, fmt.Sprintf("entry %d of auths, in the order of their names, is not the name of a registry. Windows nodes do not use it.", i+1))
			continue
		}
		if registry == notRegistry {
			continue
		}
		auth, problem := credentialOf(config.Auths[key])
		if problem != "" {
			n.add(about, field+`, auths["`+excerpt(registry)+`"]`, problem+" Windows nodes do not use it.")
			continue
		}
		// Where two names mean the same registry (https://registry.example.com and registry.example.com) the plain one goes
		// before.
		if auth != "" && (byRegistry[registry] == "" || key == registry) {
			byRegistry[registry] = auth
		}
	}
	settings.pullSecret = about
	for _, registry := range slices.Sorted(maps.Keys(byRegistry)) {
		settings.credentials = append(settings.credentials, nodespec.Credential{Registry: registry,
			Auth: byRegistry[registry]})
	}
	return nil
}

// registryOfKey returns the registry, or the part of one, that credentials are for. A name with a scheme is of the form
// that docker login once wrote, https://index.docker.io/v1/: its path is no part of the images' names.
func registryOfKey(key string) (string, bool) {
	for _, scheme := range []string{"https://", "http://"} {
		if rest, found := strings.CutPrefix(key, scheme); found {
			key, _, _ = strings.Cut(rest, "/")
			break
		}
	}
	s, ok := parseScope(key)
	if !ok || s.wildcard {
		return "", false
	}
	return s.String(), true
}

// credentialOf is base64 of user:password; empty when the entry holds none. problem tells why there is none that can be
// used.
func credentialOf(raw json.RawMessage) (auth nodespec.Secret, problem string) {
	var entry authEntry
	if json.Unmarshal(raw, &entry) != nil {
		return "", "it is not a JSON object of strings."
	}
	if entry.Auth != "" {
		decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(entry.Auth), "="))
		if err != nil {
			return "", "auth is not base64."
		}
		var found bool
		if entry.Username, entry.Password, found = strings.Cut(string(decoded), ":"); !found || entry.Username == "" {
			return "", "auth is not base64 of <user>:<password>."
		}
		// Docker pads passwords with NULs, and so does not take them for a part.
		entry.Password = strings.Trim(entry.Password, "\x00")
	}
	token := entry.IdentityToken != "" || entry.RegistryToken != ""
	switch {
	case entry.Username != "" && entry.Password != "":
		if strings.Contains(entry.Username, ":") {
			return "", "its user name contains a colon, which registries cannot distinguish from the colon before the password."
		}
		return nodespec.Secret(base64.StdEncoding.EncodeToString([]byte(entry.Username + ":" + entry.Password))), ""
	case token:
		return "", "it contains a token and no password: the kubelet and containerd support only user names with passwords."
	case entry.Username != "" || entry.Password != "":
		return "", "it contains a user without a password, or a password without a user."
	}
	return "", ""
}

// authorizationFor returns the credential for images at a host below a path: that of the longest entry that they are
// in, as the Linux nodes' container runtime looks for it.
func authorizationFor(credentials []nodespec.Credential, host, path string) nodespec.Secret {
	var best nodespec.Credential
	for _, wanted := range []string{host, aliasOf(host)} {
		place := scope{host: wanted, path: path}
		for _, credential := range credentials {
			entry, ok := parseScope(credential.Registry)
			if wanted != "" && ok && entry.contains(place) && len(credential.Registry) > len(best.Registry) {
				best = credential
			}
		}
		if best.Registry != "" {
			break
		}
	}
	return best.Auth
}

// aliasOf returns the name under which docker login keeps the credentials for Docker Hub.
func aliasOf(host string) string {
	if host == "docker.io" {
		return "index.docker.io"
	}
	return ""
}

// partsLeftOut reports credentials for a part of a registry that has mirrors. Only the kubelet could use them, and
// containerd would pass its credentials for the registry to the mirrors too.
func (n *notices) partsLeftOut(settings registrySettings, host string) {
	for _, credential := range settings.credentials {
		place, ok := parseScope(credential.Registry)
		if ok && place.path != "" && (place.host == host || place.host == aliasOf(host)) {
			n.add(settings.pullSecret, "key "+corev1.DockerConfigJsonKey+`, auths["`+excerpt(credential.Registry)+`"]`,
				fmt.Sprintf("Windows nodes do not use it, because %s has mirrors, which would receive it too. Pods that need it can name it in imagePullSecrets, "+
					"if the mirrors may receive it. Alternatively, add an entry for all of %s.", host, host))
		}
	}
}
