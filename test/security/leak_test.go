package security

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/secretscan"
)

// logbook collects log output from concurrent writers.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// logEverything configures an operator to log to the book at the maximum verbosity.
func (b *logbook) logEverything(c *operator.Config) {
	const level = 10 // no library uses a higher level
	c.Debug = true
	c.Logger = funcr.New(func(prefix, arguments string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.text.WriteString(prefix + " " + arguments + "\n")
	}, funcr.Options{Verbosity: level})
}

func (b *logbook) readAll() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

// secrets contains the keys of the operator and the nodes.
type secrets struct{ secretscan.Secrets }

func (l lab) collectKeys(hosts ...string) secrets {
	l.Helper()
	keys := secretscan.Secrets{}
	keys.AddKey("the SSH private key", l.PrivateKey())
	for _, host := range hosts {
		l.requireNoError(keys.AddPair("the key of the kubelet on "+host, l.stealIdentity(host, nodespec.ServiceKubelet).config.KeyData))
	}
	return secrets{keys}
}

func (s secrets) expectNone(t testing.TB, where string, text []byte) {
	t.Helper()
	if len(text) == 0 {
		t.Errorf("%s is empty", where)
	}
	for _, what := range s.In(text) {
		t.Errorf("%s holds %s", where, what)
	}
}

// expectNoneInCluster checks every object of the API and the audit log.
func (l lab) expectNoneInCluster(s secrets) {
	l.Helper()
	objects, err := s.InCluster(l.Context(), l.Config)
	l.requireNoError(err)
	seen := map[string]int{}
	for _, object := range objects {
		seen[object.Kind]++
		if object.Kind == "Secret" && object.Name == "cloud-private-key" {
			if len(object.Holds) == 0 {
				l.Error("where the private key is, it is not found")
			}
			continue
		}
		for _, what := range object.Holds {
			l.Errorf("%s %s/%s holds %s", object.Kind, object.Namespace, object.Name, what)
		}
	}
	for _, kind := range []string{"Node", "WindowsInstance", "CertificateSigningRequest", "Event", "ConfigMap"} {
		if seen[kind] == 0 {
			l.Errorf("no %s was looked at", kind)
		}
	}
	audit, err := os.ReadFile(l.Cluster().AuditLog)
	l.requireNoError(err)
	s.expectNone(l, "the audit log", audit)
}
