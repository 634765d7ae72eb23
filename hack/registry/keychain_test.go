package registry

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// newAuthFile returns a file of credentials with one user for a scope of a registry.
func newAuthFile(scope, user string) string {
	return `{"auths":{"` + scope + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte(user+":secret")) + `"}}}`
}

func TestKeychain_CredentialPrecedence(t *testing.T) {
	const other = `{"auths":{"other.example.com":{"auth":"bzpv"}}}`
	host := "registry.example.com"
	for what, c := range map[string]struct{ named, docker, podman, want string }{
		"of the file that is named, although docker has some":  {newAuthFile(host, "named"), newAuthFile(host, "docker"), newAuthFile(host, "podman"), "named"},
		"of the file that is named, for a part of a registry":  {newAuthFile(host+"/windows", "named"), newAuthFile(host, "docker"), "", "named"},
		"of docker, where the file that is named has none":     {other, newAuthFile(host, "docker"), "", "docker"},
		"of docker, where podman has some too":                 {"", newAuthFile(host, "docker"), newAuthFile(host, "podman"), "docker"},
		"of docker, although podman's file is broken":          {"", newAuthFile(host, "docker"), "no JSON", "docker"},
		"of podman, although docker has a configuration":       {"", other, newAuthFile(host, "podman"), "podman"},
		"of podman, where docker has none":                     {"", "", newAuthFile(host, "podman"), "podman"},
		"nobody's, where nobody has logged in to the registry": {other, other, other, ""},
		"nobody's, where nobody has logged in":                 {"", "", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
			t.Setenv("XDG_RUNTIME_DIR", filepath.Join(home, "run"))
			write(t, filepath.Join(home, ".docker", "config.json"), c.docker)
			t.Setenv("XDG_CONFIG_HOME", "")
			write(t, filepath.Join(home, "run", "containers", "auth.json"), c.podman)
			t.Setenv("REGISTRY_AUTH_FILE", write(t, filepath.Join(home, "named.json"), c.named))
			keychain, err := Keychain()
			if err != nil {
				t.Fatal(err)
			}
			repository, err := name.NewRepository(host + "/windows/operator")
			if err != nil {
				t.Fatal(err)
			}
			found, err := keychain.Resolve(repository)
			if err != nil {
				t.Fatal(err)
			}
			used, err := authn.Authorization(t.Context(), found)
			if err != nil || used.Username != c.want {
				t.Errorf("it is user %q, %v, want %q", used.Username, err, c.want)
			}
		})
	}
}

// write writes a file if there is content, and returns its path, or "".
func write(t *testing.T, path, content string) string {
	t.Helper()
	if content == "" {
		return ""
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
