package settings

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// credential is a secret of the cluster, identified by texts.
type credential struct {
	texts []string
	// in lists the files of a host that must contain the credential, besides the agent's NodeSpec; none for a
	// credential that no host may have.
	in []string
}

// hostFile is a file with the properties that the test checks.
type hostFile struct {
	content string
	private bool // only SYSTEM and administrators may read it
}

// filesOf returns all files of a host.
func filesOf(t *testing.T, h *testenv.Host) map[string]hostFile {
	t.Helper()
	seen, files := h.Machine().Snapshot().Files, map[string]hostFile{}
	for path, file := range seen {
		if file.Directory || file.LinkTarget != "" {
			continue
		}
		private := false
		for at := path; strings.Contains(at, `\`); at = at[:strings.LastIndexByte(at, '\\')] {
			private = private || seen[at].Access == host.AccessAdministrators
		}
		files[path] = hostFile{content: readHostFile(h, path), private: private}
	}
	return files
}

// keyDirectories lists the directories for private keys of the node and of the SSH server.
var keyDirectories = []string{
	`C:\ProgramData\ssh\ssh_host_ed25519_key`,
	`C:\var\lib\kubelet\pki`, `C:\k\cloud-node-manager\pki`, `C:\k\hybrid-overlay-node\pki`, `C:\k\agent\pki`,
	`C:\k\tls\certs`, nodespec.AgentRoot,
}

var (
	// Tokens of ServiceAccounts are JSON web tokens.
	webToken       = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)
	bootstrapToken = regexp.MustCompile(`(?m)(^|[\s"'=:])[a-z0-9]{6}\.[a-z0-9]{16}($|[\s"',])`)
)

// fileFaults returns the faults in the files of a host, sorted.
func fileFaults(files map[string]hostFile, credentials map[string]credential) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for path, file := range files {
		if webToken.MatchString(file.content) {
			add("%s holds a token of a ServiceAccount", path)
		}
		if bootstrapToken.MatchString(file.content) {
			add("%s holds a bootstrap token", path)
		}
		if strings.Contains(file.content, "PRIVATE KEY-----") {
			if !slices.ContainsFunc(keyDirectories, func(folder string) bool { return nodespec.IsWithin(path, folder) }) {
				add("%s holds a private key, and is no place for one", path)
			}
			if !file.private {
				add("%s holds a private key, and others than administrators may read it", path)
			}
		}
		for what, c := range credentials {
			if !slices.ContainsFunc(c.texts, func(text string) bool { return strings.Contains(file.content, text) }) {
				continue
			}
			if !slices.Contains(c.in, path) && (len(c.in) == 0 || path != nodespec.SpecPath && path != nodespec.RollbackTargetPath) {
				add("%s holds %s", path, what)
			}
			if !file.private {
				add("%s holds %s, and others than administrators may read it", path, what)
			}
		}
		faults = append(faults, kubeconfigFaults(path, file, files)...)
	}
	slices.Sort(faults)
	return faults
}

// kubeconfigFaults returns the faults in a kubeconfig, none for any other file.
func kubeconfigFaults(path string, file hostFile, files map[string]hostFile) (faults []string) {
	config, is := parseKubeconfig(file.content)
	if !is {
		return nil
	}
	if !file.private {
		faults = append(faults, path+" says how to reach the API server, and others than administrators may read it")
	}
	for name, user := range config.AuthInfos {
		if user.Token != "" || user.TokenFile != "" || user.Username != "" || user.Password != "" || user.Exec != nil ||
			user.AuthProvider != nil {
			faults = append(faults, fmt.Sprintf("%s: user %s has something else than a certificate", path, name))
		}
		if len(user.ClientKeyData) > 0 || len(user.ClientCertificateData) > 0 {
			faults = append(faults, fmt.Sprintf("%s: user %s has its credentials in the file", path, name))
		}
		// The named file may be a link to the current certificate.
		dir := user.ClientKey[:max(0, strings.LastIndexByte(user.ClientKey, '\\'))]
		if !slices.ContainsFunc(keyDirectories, func(known string) bool { return nodespec.IsWithin(dir, known) }) {
			faults = append(faults, fmt.Sprintf("%s: the key of user %s is %q", path, name, user.ClientKey))
		}
	}
	return faults
}

func parseKubeconfig(text string) (*clientcmdapi.Config, bool) {
	var kind metav1.TypeMeta
	if !strings.Contains(text, "Config") || yaml.Unmarshal([]byte(text), &kind) != nil || kind.Kind != "Config" {
		return nil, false
	}
	config, err := clientcmd.Load([]byte(text))
	return config, err == nil && len(config.AuthInfos) > 0
}

// keyTexts returns the texts that identify a private key.
func keyTexts(key []byte) []string {
	secrets := secretscan.Secrets{}
	secrets.AddKey("key", key)
	return secrets["key"]
}

const (
	credentialsFile = `C:\var\lib\kubelet\config.json`
	mirrorFile      = registries + `\quay.io\hosts.toml`
	exporterKey     = `C:\k\tls\certs\tls.key`
)

// withSecretSettings returns a function that configures every cluster setting with a secret. The secrets are added to
// credentials.
func withSecretSettings(t *testing.T, credentials map[string]credential) func(context.Context, *testenv.Environment) error {
	auth := func(password string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + password)) }
	registry, mirror, telemetry := auth("registry-canary"), auth("mirror-canary"), auth("telemetry-canary")
	exporter := newAuthority(t, "exporter")
	const tokenID, tokenSecret = "canary", "canarycanary0123"
	maps.Copy(credentials, map[string]credential{
		"the credentials for a registry": {[]string{registry, "registry-canary"}, []string{credentialsFile}},
		"the credentials for a mirror":   {[]string{mirror, "mirror-canary"}, []string{credentialsFile, mirrorFile}},
		"the credentials for telemetry":  {[]string{telemetry, "telemetry-canary"}, nil},
		"the exporter's key":             {keyTexts([]byte(exporter.key)), []string{exporterKey}},
		"a bootstrap token of the cluster": {[]string{tokenSecret,
			base64.StdEncoding.EncodeToString([]byte(tokenSecret))}, nil},
		"the token that Linux nodes start with": {[]string{"linux-token-canary",
			base64.StdEncoding.EncodeToString([]byte("linux-token-canary"))}, nil},
	})
	return func(ctx context.Context, r *testenv.Environment) error {
		credentials["the operator's SSH key"] = credential{texts: keyTexts(r.PrivateKey())}
		if key := r.Config.KeyData; len(key) > 0 {
			credentials["the key of the cluster's administrator"] = credential{texts: keyTexts(key)}
		}
		_, err := r.SetPullSecret(ctx,
			fmt.Appendf(nil, `{"auths":{"cloud.openshift.com":{"auth":%q},"registry.example.com":{"auth":%q},"mirror.example.com:5000":{"auth":%q}}}`,
				telemetry, registry, mirror))
		return firstError(err,
			r.SetDigestMirrors(ctx, configv1.ImageDigestMirrors{Source: "quay.io/team",
				Mirrors: []configv1.ImageMirror{"mirror.example.com:5000/cache/team"}}),
			r.SetProxy(ctx, configv1.ProxySpec{HTTPProxy: "http://user:proxy-canary@proxy.example.com:3128",
				HTTPSProxy: "http://proxy.example.com:3128"}),
			r.SetExporterTLS(ctx, []byte(exporter.pem), []byte(exporter.key)),
			r.Client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + tokenID},
				Type:       corev1.SecretTypeBootstrapToken,
				StringData: map[string]string{"token-id": tokenID, "token-secret": tokenSecret,
					"usage-bootstrap-authentication": "true"},
			}),
			r.Client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-bootstrapper-token"},
				StringData: map[string]string{"token": "linux-token-canary"},
			}))
	}
}

// This covers rule 8, and checks in every file that no host has a credential of the cluster.
func TestHostFiles_HoldOnlyRequiredSecrets(t *testing.T) {
	credentials := map[string]credential{}
	l, machine := newCloudLab(t, "Azure", testenv.Options{Hosts: testenv.Hosts(1)}, withSecretSettings(t, credentials))
	for _, h := range []*testenv.Host{l.Host("instance-1"), machine} {
		files := filesOf(t, h)
		t.Run("hold no secret that does not belong there, on "+h.Options.Name, func(t *testing.T) {
			for _, fault := range fileFaults(files, credentials) {
				t.Error(fault)
			}
			for path, file := range files {
				// The environment of services is stored only in the registry of Windows.
				if strings.Contains(file.content, "proxy-canary") &&
					(path != nodespec.SpecPath && path != nodespec.RollbackTargetPath || !file.private) {
					t.Errorf("%s holds the proxy's password", path)
				}
				if nodespec.IsWithin(path, nodespec.InboxRoot) || nodespec.IsWithin(path, nodespec.LandingRoot) {
					t.Errorf("%s was left behind", path)
				}
			}
		})
		t.Run("hold what they must, for administrators only, on "+h.Options.Name, func(t *testing.T) {
			kubeconfigs, keys := 0, 0
			for _, file := range files {
				if _, is := parseKubeconfig(file.content); is {
					kubeconfigs++
				}
				if strings.Contains(file.content, "PRIVATE KEY-----") {
					keys++
				}
			}
			// Keys of the kubelet (two), hybrid-overlay-node, cloud-node-manager, the agent and the exporter.
			if kubeconfigs < 2 || keys < 5 {
				t.Errorf("there are %d files for the API server and %d keys", kubeconfigs, keys)
			}
			for what, c := range credentials {
				for _, path := range c.in {
					if !slices.ContainsFunc(c.texts, func(text string) bool { return strings.Contains(files[path].content, text) }) {
						t.Errorf("%s is not in %s", what, path)
					}
				}
			}
		})
	}
	t.Run("that hold anything else would have been noticed", func(t *testing.T) {
		checkDetection(t, filesOf(t, machine), credentials)
	})
}

// checkDetection adds forbidden content to the files of a host, one file after the other, and checks that it is
// detected.
func checkDetection(t *testing.T, files map[string]hostFile, credentials map[string]credential) {
	const open = `C:\Users\Public\notes.txt`
	before := len(fileFaults(files, credentials))
	key := newAuthority(t, "other").key
	present := files[`C:\k\kubeconfig`].content
	with := func(old, added string) string { return strings.Replace(present, old, added, 1) }
	for what, c := range map[string]struct {
		path string
		file hostFile
	}{
		"a ServiceAccount's token": {`C:\k\x`,
			hostFile{"token: eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ", true}},
		"a bootstrap token":                {`C:\k\x`, hostFile{`token: "abcdef.0123456789abcdef"`, true}},
		"a private key in another place":   {`C:\k\x`, hostFile{key, true}},
		"a private key for others to read": {`C:\var\lib\kubelet\pki\kubelet.pem`, hostFile{key, false}},
		"a secret for others to read":      {credentialsFile, hostFile{files[credentialsFile].content, false}},
		"the SSH key where only we can see": {nodespec.SpecPath,
			hostFile{credentials["the operator's SSH key"].texts[0], true}},
		"a registry's credentials":        {open, hostFile{credentials["the credentials for a registry"].texts[0], true}},
		"a kubeconfig for others to read": {`C:\k\kubeconfig`, hostFile{present, false}},
		"a kubeconfig with a token": {`C:\k\kubeconfig`,
			hostFile{with(`"client-key":`, `"token":"x","client-key":`), true}},
		"a kubeconfig with a key in it": {`C:\k\kubeconfig`,
			hostFile{with(`"client-key":`, `"client-key-data":"eA==","client-key":`), true}},
		"a kubeconfig with a key elsewhere": {`C:\k\kubeconfig`,
			hostFile{with(`"client-key": "C:\\var\\lib\\kubelet\\pki`, `"client-key": "C:\\Temp`), true}},
	} {
		changed := maps.Clone(files)
		changed[c.path] = c.file
		if c.file == files[c.path] || len(fileFaults(changed, credentials)) <= before {
			t.Errorf("%s in %s is not noticed", what, c.path)
		}
	}
}
