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

// PullSecret is the Secret with the registry credentials of all nodes of the cluster.
var PullSecret = types.NamespacedName{Namespace: "openshift-config", Name: "pull-secret"}

// notRegistry is the entry of every pull secret for reporting to Red Hat, which is not a registry.
const notRegistry = "cloud.openshift.com"

// authEntry contains the possible fields of an entry of a .dockerconfigjson. Tokens are only checked for
// existence.
type authEntry struct {
	Username      string          `json:"username"`
	Password      string          `json:"password"`
	Auth          string          `json:"auth"`
	IdentityToken nodespec.Secret `json:"identitytoken"`
	RegistryToken nodespec.Secret `json:"registrytoken"`
}

// readPullSecret reads the credentials for registries. Neither errors nor notices contain any part of a value.
// L-02
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
		return about.error(field, "the key does not exist: the credentials for registries are unknown."+remedy)
	}
	// The errors of the decoder are discarded because they may quote the content.
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
			n.addNotice(about, field, fmt.Sprintf("entry %d of auths, in the order of their names, is not the name of a registry. Windows nodes do not use it.", i+1))
			continue
		}
		if registry == notRegistry {
			continue
		}
		auth, problem := credentialOf(config.Auths[key])
		if problem != "" {
			n.addNotice(about, field+`, auths["`+formatExcerpt(registry)+`"]`, problem+" Windows nodes do not use it.")
			continue
		}
		// If two names mean the same registry (https://registry.example.com and registry.example.com), the
		// plain name has priority.
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

// registryOfKey returns the registry, or the part of a registry, that credentials are for. A name with a scheme
// has a former format of docker login, https://index.docker.io/v1/: the path is not part of image names.
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

// credentialOf returns base64 of user:password; empty if the entry contains none. Problem is the reason for
// unusable credentials.
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
		// Docker pads passwords with NULs, and therefore does not treat them as part of the password.
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

// authorizationFor returns the credential for images at a host below a path: the credential of the longest
// matching entry, as in the container runtime of Linux nodes.
func authorizationFor(credentials []nodespec.Credential, host, path string) nodespec.Secret {
	var best nodespec.Credential
	for _, wanted := range []string{host, aliasOf(host)} {
		place := scope{host: wanted, path: path}
		for _, credential := range credentials {
			entry, ok := parseScope(credential.Registry)
			if wanted != "" && ok && entry.containsScope(place) && len(credential.Registry) > len(best.Registry) {
				best = credential
			}
		}
		if best.Registry != "" {
			break
		}
	}
	return best.Auth
}

// aliasOf returns the name of Docker Hub in the credentials written by docker login.
func aliasOf(host string) string {
	if host == "docker.io" {
		return "index.docker.io"
	}
	return ""
}

// reportUnusedCredentials reports credentials for a part of a registry with mirrors. Only the kubelet could use these
// credentials, and containerd would also send the kubelet's credentials for the registry to the mirrors.
func (n *notices) reportUnusedCredentials(settings registrySettings, host string) {
	for _, credential := range settings.credentials {
		place, ok := parseScope(credential.Registry)
		if ok && place.path != "" && (place.host == host || place.host == aliasOf(host)) {
			n.addNotice(settings.pullSecret, "key "+corev1.DockerConfigJsonKey+`, auths["`+formatExcerpt(credential.Registry)+`"]`,
				fmt.Sprintf("Windows nodes do not use it, because %s has mirrors, which would receive it too. Pods that need it can name it in imagePullSecrets, "+
					"if the mirrors may receive it. Alternatively, add an entry for all of %s.", host, host))
		}
	}
}
