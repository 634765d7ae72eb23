package kubelet

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
)

func TestCredentialProvider_AcceptedByKubelet(t *testing.T) {
	programs := t.TempDir()
	name := "ecr-credential-provider"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if err := os.WriteFile(filepath.Join(programs, name), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range goldenFiles(t, "credential-provider-config.yaml") {
		if err := plugin.RegisterCredentialProviderPlugins(path, programs, nil, nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestPullSecret_CredentialsMatchRegistry(t *testing.T) {
	credentialprovider.SetPreferredDockercfgPath(filepath.Join(nodespec, "testdata", "registries"))
	config, err := credentialprovider.ReadDockerConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var keyring credentialprovider.BasicDockerKeyring
	keyring.Add(nil, config)
	for image, want := range map[string]string{
		"parts.example.com/org/app:v1": "org", "parts.example.com/other/app:v1": "", "quay.io/org/app:v1": "",
		"private.example.com:5000/app": "user", "private.example.com/app": "",
	} {
		found, ok := keyring.Lookup(image)
		if ok != (want != "") || ok && found[0].Username != want {
			t.Errorf("%s is pulled with %d credentials, want those of %q", image, len(found), want)
		}
	}
}
