package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
)

// authFile is the variable with the path of the credentials, in the format of a cluster's pull secret.
const authFile = "REGISTRY_AUTH_FILE"

// Keychain returns the registry credentials that podman, skopeo, oc and docker have stored: from the file in
// REGISTRY_AUTH_FILE, else docker's, else podman's. As for podman, the explicit file takes precedence.
func Keychain() (authn.Keychain, error) {
	stored := authn.NewMultiKeychain(authn.DefaultKeychain, podmanKeychain())
	path := os.Getenv(authFile)
	if path == "" {
		return stored, nil
	}
	if _, err := readLogins(path); err != nil {
		return nil, fmt.Errorf("%s: %w", authFile, err)
	}
	return authn.NewMultiKeychain(loginFile(path), stored), nil
}

// podmanKeychain returns the files of podman login. authn.DefaultKeychain reads these only on a computer without any
// docker configuration.
func podmanKeychain() authn.Keychain {
	home, _ := os.UserHomeDir() // otherwise there is no such file
	var files []authn.Keychain
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))} {
		files = append(files, loginFile(filepath.Join(dir, "containers", "auth.json")))
	}
	return authn.NewMultiKeychain(files...)
}

// loginFile is the path of an optional file of credentials.
type loginFile string

func readLogins(path string) (*configfile.ConfigFile, error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	content, err := config.LoadFromReader(opened)
	if err != nil {
		return nil, fmt.Errorf("%s is not a valid auth.json: %w", path, err)
	}
	return content, nil
}

// Resolve returns the credentials for the longest matching scope of a repository: an entry may be for a registry,
// or for a part of one. It implements authn.Keychain.
func (f loginFile) Resolve(target authn.Resource) (authn.Authenticator, error) {
	content, err := readLogins(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return authn.Anonymous, nil
	}
	if err != nil {
		return nil, err
	}
	for scope := target.String(); scope != ""; scope = parentScope(scope) {
		found, err := content.GetAuthConfig(scope)
		if err != nil {
			return nil, fmt.Errorf("credentials for %s: %w", scope, err)
		}
		found.ServerAddress = "" // only repeats the scope
		if found != (types.AuthConfig{}) {
			return authn.FromConfig(authn.AuthConfig{Username: found.Username, Password: found.Password, Auth: found.Auth,
				IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken}), nil
		}
	}
	return authn.Anonymous, nil
}

// parentScope returns the parent of a scope in a registry, or "" for a registry.
func parentScope(scope string) string {
	i := strings.LastIndex(scope, "/")
	return scope[:max(i, 0)]
}
