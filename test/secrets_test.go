package test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// logbook collects log output from concurrent writers.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logbook) addLine(prefix, arguments string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(prefix + " " + arguments + "\n")
}

func (b *logbook) readAll() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

// everything is a log verbosity above the highest level used by any library.
const everything = 10

func TestSecrets_NotExposedInLogClusterOrHosts(t *testing.T) {
	controlPlane, clock := parallelCluster(t), clocktesting.NewFakeClock(time.Now())
	pumpClock(t, clock, tenfoldStep)
	r := newInstalledRig(t, testenv.Options{Cluster: controlPlane, Hosts: testenv.Hosts(3), Clock: clock})
	r.Host("instance-2").Inject(winhost.RejectKey, winhost.Parameters{})
	restore := r.Host("instance-3").Inject(winhost.FailServiceStart, winhost.FailServiceStart.Example())
	damaged := damagedKey(r.PrivateKey())
	requireNoError(t, r.SetKey(t.Context(), damaged))

	log := &logbook{}
	_, err := r.RunOperator(func(c *operator.Config) {
		c.Debug, c.Logger = true, funcr.New(log.addLine, funcr.Options{Verbosity: everything})
	})
	requireNoError(t, err)
	list(t, r)
	waitForReason(t, r, "instance-1", v1alpha1.ReasonPrivateKeyInvalid)
	requireNoError(t, r.CreateKey(t.Context()))
	waitUntilReady(t, r, "instance-1")
	waitForReason(t, r, "instance-2", "AuthenticationFailed")
	waitForReason(t, r, "instance-3", "ServiceFailed")
	restore()
	waitUntilReady(t, r, "instance-3")

	secrets := secretscan.Secrets{}
	secrets.AddKey("the SSH private key", r.PrivateKey())
	secrets.AddKey("a damaged SSH private key", damaged)
	for _, name := range []string{"instance-1", "instance-3"} {
		addKubeletKeys(t, secrets, r.Host(name))
	}
	search := func(t *testing.T) {
		expectNone(t, secrets, "the operator's log", log.readAll())
		expectNoneInCluster(t, secrets, r)
		for _, h := range r.Hosts() {
			expectNoneOnHost(t, secrets, h)
		}
	}
	t.Run("while nodes run and hosts fail", search)
	list(t, r, "instance-2", "instance-3")
	waitUntilDeleted(t, r, "instance-1")
	t.Run("after a removal", search)
	t.Run("and this would have been noticed", func(t *testing.T) {
		if text := string(log.readAll()); !strings.Contains(text, "AuthenticationFailed") ||
			!strings.Contains(text, `"level"=1`) {
			t.Error("the log tells nothing")
		}
		for what, values := range secrets {
			if len(values) < 2 {
				t.Errorf("of %s there are only %d values to look for", what, len(values))
			}
		}
	})
}

// damagedKey returns a private key with an unreadable envelope and secret content that differs from the valid key.
func damagedKey(key []byte) []byte {
	text := strings.ReplaceAll(string(key), "\n", "A\n")
	return []byte(strings.ReplaceAll(strings.ReplaceAll(text, "-----A", "-----"), "OPENSSH", "RSA"))
}

// expectNone checks that a text holds no secret.
func expectNone(t *testing.T, secrets secretscan.Secrets, where string, text []byte) {
	t.Helper()
	for _, what := range secrets.In(text) {
		t.Errorf("%s holds %s", where, what)
	}
}

// addKubeletKeys adds the keys that were generated on a host.
func addKubeletKeys(t *testing.T, secrets secretscan.Secrets, h *testenv.Host) {
	t.Helper()
	entries, err := h.Machine().Drive().ReadDir(pki)
	requireNoError(t, err)
	for _, entry := range entries {
		if entry.Directory {
			continue
		}
		data, err := h.Machine().Drive().ReadFile(entry.Path)
		requireNoError(t, err)
		if bytes.Contains(data, []byte("-----BEGIN EC PRIVATE KEY")) {
			requireNoError(t, secrets.AddPair("the key in "+entry.Name+" of "+h.Options.Name, data))
		}
	}
}

// expectNoneInCluster checks every object of the API and the audit log.
func expectNoneInCluster(t *testing.T, secrets secretscan.Secrets, r *testenv.Environment) {
	t.Helper()
	objects, err := secrets.InCluster(t.Context(), r.Config)
	requireNoError(t, err)
	seen := map[string]int{}
	for _, object := range objects {
		if object.Kind == "Secret" && object.Name == "cloud-private-key" {
			continue // where the key belongs
		}
		seen[object.Kind]++
		for _, what := range object.Holds {
			t.Errorf("%s %s/%s holds %s", object.Kind, object.Namespace, object.Name, what)
		}
	}
	for _, kind := range []string{"Node", "WindowsInstance", "CertificateSigningRequest", "Event", "ConfigMap"} {
		if seen[kind] == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
	audit, err := os.ReadFile(r.Cluster().AuditLog)
	requireNoError(t, err)
	expectNone(t, secrets, "the audit log", audit)
}

// expectNoneOnHost checks the agent's files, all command lines, and every file that non-administrators may read.
func expectNoneOnHost(t *testing.T, secrets secretscan.Secrets, h *testenv.Host) {
	t.Helper()
	files := h.Machine().Snapshot().Files
	for path, file := range files {
		if file.Directory || file.LinkTarget != "" || strings.HasPrefix(path, pki) &&
			isAdministratorsOnly(path, func(p string) host.Access {
				return files[p].Access
			}) {
			continue
		}
		content, err := h.Machine().Drive().ReadFile(path)
		requireNoError(t, err)
		expectNone(t, secrets, path+" of "+h.Options.Name, content)
	}
	for _, entry := range h.Machine().Journal().Entries(nil) {
		expectNone(t, secrets, "a command line or message of "+h.Options.Name, []byte(entry.Detail))
	}
}

// isAdministratorsOnly reports whether access to a path is limited to administrators, by the path itself or by a parent
// directory.
func isAdministratorsOnly(path string, access func(string) host.Access) bool {
	for {
		if access(path) == host.AccessAdministrators {
			return true
		}
		end := strings.LastIndexByte(path, '\\')
		if end <= len("C:") {
			return false
		}
		path = path[:end]
	}
}
