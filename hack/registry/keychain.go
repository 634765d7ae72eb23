// Package registry opens images in a registry or in an OCI layout on disk, with the credentials that podman, skopeo and
// oc use. It reads, and writes nothing.
package registry

import (
	"fmt"
	"os"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
)

// authFile names the variable with the file of credentials, which has the form of a cluster's pull secret.
const authFile = "REGISTRY_AUTH_FILE"

// Keychain returns credentials: those in the file that REGISTRY_AUTH_FILE names, else those where podman and docker
// keep theirs. The file goes first, as for podman: who names one means it.
func Keychain() (authn.Keychain, error) {
	path := os.Getenv(authFile)
	if path == "" {
		return authn.DefaultKeychain, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authFile, err)
	}
	defer file.Close()
	content, err := config.LoadFromReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s=%s is not a valid auth.json: %w", authFile, path, err)
	}
	return authn.NewMultiKeychain(named{content}, authn.DefaultKeychain), nil
}

// named are the credentials of a file.
type named struct{ file *configfile.ConfigFile }

// Resolve takes the credentials for the longest part of a repository's name: an entry may be for a registry, or for a
// part of one. It implements authn.Keychain.
func (n named) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for scope := target.String(); scope != ""; scope = parent(scope) {
		found, err := n.file.GetAuthConfig(scope)
		if err != nil {
			return nil, fmt.Errorf("credentials for %s: %w", scope, err)
		}
		found.ServerAddress = "" // it repeats the question
		if found != (types.AuthConfig{}) {
			return authn.FromConfig(authn.AuthConfig{Username: found.Username, Password: found.Password, Auth: found.Auth,
				IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken}), nil
		}
	}
	return authn.Anonymous, nil
}

// parent returns the part of a registry that another part is in; "" for a registry.
func parent(scope string) string {
	i := strings.LastIndex(scope, "/")
	return scope[:max(i, 0)]
}
