package components_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// The real kubelet and kube-proxy accept their command lines, configurations, kubeconfig and certificate, as
// far as Wine behaves like Windows. They run up to the point where Wine lacks support: the pipe of the
// container runtime, and a cluster.
func TestKubernetes_KubeletAndKubeProxyAcceptFiles(t *testing.T) {
	for service, test := range map[string]struct{ address, until string }{
		"kubelet":    {"10.2.0.3", "validate service connection"},
		"kube-proxy": {"10.2.0.4", "failed to list *v1.Node"},
	} {
		t.Run(service, func(t *testing.T) {
			built := buildExecutable(t, service, service+".exe")
			ctx := requireWine(t)
			spec := specOf(t, nodespec.Registries{})
			files := map[string]string{`C:\tests\program.exe`: built}
			for _, file := range spec.Files {
				filled := strings.NewReplacer(nodespec.PlaceholderPodSubnet, "10.132.0.0/23", nodespec.PlaceholderSourceVIP,
					"10.132.0.9").Replace(string(file.Bytes()))
				files[file.Path] = writeLocalFile(t, []byte(filled))
			}
			authority, identity := newIdentity(t)
			for path, content := range map[string][]byte{
				`C:\k\bootstrap-ca.crt`: authority, `C:\k\kubelet-ca.crt`: authority,
				`C:\var\lib\kubelet\pki\kubelet-client-current.pem`: identity,
			} {
				files[path] = writeLocalFile(t, content)
			}
			h := start(ctx, t, wine.Options{Name: "NODE", Address: netip.MustParseAddr(test.address), Files: files})
			output := runUntil(ctx, t, h, `C:\tests\program.exe `+strings.Join(serviceArguments(t, spec, service), " "), test.until)
			for _, warning := range []string{"unknown field", "lenient", "deprecated", "failed to load", "unknown flag"} {
				if line := lineWith(output, warning); line != "" {
					t.Error(line)
				}
			}
		})
	}
}

// serviceArguments returns the arguments of a service's own program, without the one that a plain process cannot have.
func serviceArguments(t *testing.T, spec nodespec.NodeSpec, name string) []string {
	t.Helper()
	i := slices.IndexFunc(spec.Services, func(s nodespec.Service) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("the node has no %s", name)
	}
	words := host.SplitCommandLine(spec.Services[i].CommandLine)
	i = slices.IndexFunc(words, func(word string) bool { return strings.HasSuffix(word, `\`+name+".exe") })
	return slices.DeleteFunc(slices.Clone(words[i+1:]), func(word string) bool { return word == "--windows-service" })
}

// writeLocalFile writes a temporary local file.
func writeLocalFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	requireNoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// newIdentity returns the certificate of an authority, and a node certificate with key.
func newIdentity(t *testing.T) (authority, node []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	requireNoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:win",
			Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	requireNoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	requireNoError(t, err)
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return authority, append(slices.Clone(authority),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})...)
}
