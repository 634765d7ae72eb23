package nodespec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/host"
)

func fileAt(t testing.TB, spec NodeSpec, path string) File {
	t.Helper()
	i := slices.IndexFunc(spec.Files, func(f File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("the spec has no file %s", path)
	}
	return spec.Files[i]
}

// fullInputs returns the inputs with all optional settings of a cluster.
func fullInputs() Inputs {
	in := azureInputs()
	in.Cluster.Registries = fullRegistries().Cluster.Registries
	in.Cluster.Registries.Credentials = append(in.Cluster.Registries.Credentials,
		Credential{Registry: "private.example.com", Auth: "c2VjcmV0OnNlY3JldA=="})
	in.PauseImage = "registry.example.com/pause:3.10"
	return in
}

// webConfig is the relevant part of the exporter's web configuration. The fields are named as in
// github.com/prometheus/exporter-toolkit.
type webConfig struct {
	Cert       string `json:"cert_file"`
	Key        string `json:"key_file"`
	Min        string `json:"min_version"`
	ClientAuth string `json:"client_auth_type"`
	ClientCA   string `json:"client_ca_file"`
}

func webConfigOf(t *testing.T, spec NodeSpec) webConfig {
	t.Helper()
	var config struct {
		Server webConfig `json:"tls_server_config"`
	}
	if err := yaml.UnmarshalStrict([]byte(fileAt(t, spec, exporterWebConfigFile).Content), &config); err != nil {
		t.Fatal(err)
	}
	return config.Server
}

//
func TestExporter(t *testing.T) {
	t.Run("serves plainly where the cluster has no certificate for it", func(t *testing.T) {
		spec := mustMake(t, testInputs())
		if words := wordsOf(t, spec, ServiceExporter); slices.Contains(words, "--web.config.file") {
			t.Errorf("%q", words)
		}
		if slices.ContainsFunc(spec.Files, func(f File) bool { return IsWithin(f.Path, tlsDirectory) }) {
			t.Error("there are files for a certificate")
		}
	})
	t.Run("serves over TLS where it has one, and the key is a secret", func(t *testing.T) {
		in := azureInputs()
		spec := mustMake(t, in)
		words := wordsOf(t, spec, ServiceExporter)
		if i := slices.Index(words, "--web.config.file"); i < 0 || words[i+1] != exporterWebConfigFile {
			t.Errorf("%q", words)
		}
		key := fileAt(t, spec, exporterKeyFile)
		if key.Secret != in.Cluster.MetricsServing.Key || key.Content != "" || key.Access != host.AccessAdministrators {
			t.Errorf("%+v", key)
		}
		if config := webConfigOf(t, spec); config.Cert != exporterCertFile || config.Key != exporterKeyFile || config.Min != "TLS12" {
			t.Errorf("%+v", config)
		}
	})
	t.Run("answers only clients whose authorities the cluster names", func(t *testing.T) {
		in := azureInputs()
		spec := mustMake(t, in)
		if config := webConfigOf(t, spec); config.ClientAuth != "RequireAndVerifyClientCert" || config.ClientCA != exporterClientCAFile ||
			fileAt(t, spec, exporterClientCAFile).Content != in.Cluster.MetricsServing.ClientCA {
			t.Errorf("%+v", config)
		}
		at := func(path string) int {
			return slices.IndexFunc(spec.Files, func(f File) bool { return f.Path == path })
		}
		if at(exporterWebConfigFile) < at(exporterClientCAFile) {
			t.Error("for a moment the configuration names a file that is not there")
		}
	})
	t.Run("and any client where it names none", func(t *testing.T) {
		in := azureInputs()
		in.Cluster.MetricsServing.ClientCA = ""
		spec := mustMake(t, in)
		if config := webConfigOf(t, spec); config.ClientAuth+config.ClientCA != "" {
			t.Errorf("%+v", config)
		}
		if slices.ContainsFunc(spec.Files, func(f File) bool { return f.Path == exporterClientCAFile }) {
			t.Error("there are authorities of clients")
		}
	})
	t.Run("a new certificate restarts nothing", func(t *testing.T) {
		in := azureInputs()
		before := mustMake(t, in)
		in.Cluster.MetricsServing.Key = "-----BEGIN PRIVATE KEY-----\nbmV3\n-----END PRIVATE KEY-----\n"
		in.Cluster.MetricsServing.ClientCA += in.Cluster.APIServerCA
		after := mustMake(t, in)
		if before.Digest() == after.Digest() || fmt.Sprint(before.Services) != fmt.Sprint(after.Services) {
			t.Error("it is not reported, or a service is another")
		}
		for _, service := range after.Services {
			if slices.ContainsFunc(service.RestartOn, func(path string) bool { return IsWithin(path, tlsDirectory) }) {
				t.Errorf("%s restarts on it", service.Name)
			}
		}
	})
}

func TestCredentialProvider(t *testing.T) {
	spec := mustMake(t, awsInputs())
	t.Run("is found by the kubelet of AWS", func(t *testing.T) {
		words := wordsOf(t, spec, ServiceKubelet)
		i := slices.IndexFunc(spec.Releases, func(r Release) bool { return r.Component == "ecr-credential-provider" })
		for _, want := range []string{
			`--image-credential-provider-config=C:\k\credential-provider-config.yaml`, "--image-credential-provider-bin-dir=" +
				spec.Releases[i].Directory,
		} {
			if !slices.Contains(words, want) {
				t.Errorf("%s is missing in %q", want, words)
			}
		}
		var config struct{ Providers []struct{ Name string } }
		if err := json.Unmarshal([]byte(fileAt(t, spec, credentialProviderFile).Content), &config); err != nil ||
			config.Providers[0].Name+".exe" != spec.Releases[i].Files[0].Name {
			t.Errorf("%+v, error %v", config, err)
		}
	})
	t.Run("is for AWS only", func(t *testing.T) {
		data, err := mustMake(t, azureInputs()).Encode()
		if err != nil || strings.Contains(string(data), "credential-provider") {
			t.Errorf("it is not; error %v", err)
		}
	})
}

func TestSecrets_OnlyInProtectedFiles(t *testing.T) {
	in := fullInputs()
	secrets := []string{string(in.Cluster.MetricsServing.Key)}
	for _, credential := range in.Cluster.Registries.Credentials {
		secrets = append(secrets, string(credential.Auth))
	}
	for _, registry := range in.Cluster.Registries.Hosts {
		for _, mirror := range registry.Mirrors {
			secrets = append(secrets, string(mirror.Authorization))
		}
	}
	secrets = slices.DeleteFunc(secrets, func(secret string) bool { return secret == "" })
	spec := mustMake(t, in)
	for _, secret := range append(secrets, "secret-of-proxy") {
		for _, file := range spec.Files {
			if strings.Contains(file.Content, secret) {
				t.Errorf("%s is open", file.Path)
			}
			if file.Secret != "" && file.Access != host.AccessAdministrators {
				t.Errorf("%s may be read by others", file.Path)
			}
		}
		for _, service := range spec.Services {
			if strings.Contains(service.CommandLine, secret) {
				t.Errorf("%s has it in its command line", service.Name)
			}
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", spec.Files, spec.Files, spec.Files); strings.Contains(text,
		"c2VjcmV0LW9mLWV4cG9ydGVy") {
		t.Error("files print the secret")
	}
}

// For arbitrary cluster settings, a command line splits into the intended words, and equal inputs result in equal
// nodes.
func TestCommandLines(t *testing.T) {
	spec := mustMake(t, fullInputs())
	for _, service := range spec.Services {
		words := host.SplitCommandLine(service.CommandLine)
		if host.CommandLine(words...) != service.CommandLine {
			t.Errorf("%s: %s", service.Name, service.CommandLine)
		}
		for _, word := range words {
			if strings.ContainsAny(word, "\"'\n\r\x00 ") {
				t.Errorf("%s has the word %q", service.Name, word)
			}
		}
	}
	for range 20 {
		if again := mustMake(t, fullInputs()); again.Digest() != spec.Digest() {
			t.Fatal("the same inputs make another node")
		}
	}
}

// csi-proxy continues running after reporting a stop. Windows ends the process that was started as the service, but
// not the children of that process.
func TestCSIProxy_IsProcessOfItsService(t *testing.T) {
	words := wordsOf(t, mustMake(t, testInputs()), ServiceCSIProxy)
	if !strings.HasSuffix(words[0], `\csi-proxy.exe`) {
		t.Errorf("the service's process is %s", words[0])
	}
	// klog truncates a log file at 1800 MiB, before a larger rotation size is reached.
	for _, want := range []string{"-windows-service", "-logtostderr=false", `-log_file=C:\var\log\csi-proxy\csi-proxy.log`,
		"-log_file_max_size=0"} {
		if !slices.Contains(words, want) {
			t.Errorf("%s is missing in %q", want, words)
		}
	}
}

func TestChecks(t *testing.T) {
	checks := mustMake(t, azureInputs()).Checks
	byName := map[string]Check{}
	for _, check := range checks {
		if byName[check.Name].Name != "" || check.Hint == "" || !strings.HasSuffix(check.Hint, ".") ||
			strings.Contains(check.Hint, "\n") {
			t.Errorf("%+v: it is there twice, or its hint is no sentence", check)
		}
		byName[check.Name] = check
	}
	t.Run("the exporter is asked as it serves", func(t *testing.T) {
		check := byName["ExporterServes"]
		if check.Target != "https://127.0.0.1:9182/metrics" || check.ClientCertificate != `C:\var\lib\kubelet\pki\kubelet-client-current.pem` {
			t.Errorf("%+v", check)
		}
	})
	t.Run("the firewall lets in the operator, load balancers, scrapes of metrics and requests to the kubelet", func(t *testing.T) {
		var ports []int
		for _, rule := range mustMake(t, azureInputs()).Firewall {
			ports = append(ports, rule.LocalPort)
		}
		if !slices.Equal(ports, []int{10250, 9182, 10256, 22}) {
			t.Error(ports)
		}
	})
}
