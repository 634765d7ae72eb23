package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// secrets are values that nobody may see, by what they are.
type secrets map[string][]string

// shortest is the length in characters from which a part of a key is no chance.
const shortest = 32

// add enters a private key in PEM form: its lines but the first, which is the same for all keys of a kind, and the whole as a Secret
// holds it.
func (s secrets) add(what string, key []byte) {
	first := true
	for line := range strings.Lines(string(key)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") || len(line) < shortest {
			continue
		}
		if !first {
			s[what] = append(s[what], line)
		}
		first = false
	}
	encoded := base64.StdEncoding.EncodeToString(key)
	s[what] = append(s[what], encoded[len(encoded)/2:][:shortest])
}

// expectNone checks that a text holds no secret.
func (s secrets) expectNone(t *testing.T, where string, text []byte) {
	t.Helper()
	for what, values := range s {
		if slices.ContainsFunc(values, func(value string) bool { return bytes.Contains(text, []byte(value)) }) {
			t.Errorf("%s holds %s", where, what)
		}
	}
}

// logbook takes a log that is written from everywhere.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logbook) add(prefix, arguments string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(prefix + " " + arguments + "\n")
}

func (b *logbook) all() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

// everything is a verbosity that no library goes beyond.
const everything = 10

func TestNoSecretIsFoundWhereOthersMayRead(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	pump(t, clock, tenfold)
	r := installed(t, rig.Options{Hosts: rig.Hosts(3), Clock: clock})
	r.Host("instance-2").Inject(winhost.RejectKey, winhost.Parameters{})
	mend := r.Host("instance-3").Inject(winhost.ServiceFailsToStart, winhost.ServiceFailsToStart.Example())
	damaged := damagedKey(r.PrivateKey())
	must(t, r.SetKey(t.Context(), damaged))

	log := &logbook{}
	_, err := r.RunOperator(func(c *operator.Config) {
		c.Debug, c.Logger = true, funcr.New(log.add, funcr.Options{Verbosity: everything})
	})
	must(t, err)
	list(t, r)
	waitForReason(t, r, "instance-1", v1alpha1.ReasonPrivateKeyInvalid)
	must(t, r.CreateKey(t.Context()))
	ready(t, r, "instance-1")
	waitForReason(t, r, "instance-2", "AuthenticationFailed")
	waitForReason(t, r, "instance-3", "ServiceFailed")
	mend()
	ready(t, r, "instance-3")

	kept := secrets{}
	kept.add("the SSH private key", r.PrivateKey())
	kept.add("a damaged SSH private key", damaged)
	for _, name := range []string{"instance-1", "instance-3"} {
		kept.addKubeletKeys(t, r.Host(name))
	}
	look := func(t *testing.T) {
		kept.expectNone(t, "the operator's log", log.all())
		kept.expectNoneInCluster(t, r)
		for _, h := range r.Hosts() {
			kept.expectNoneOnHost(t, h)
		}
		kept.expectNoneInFolder(t, filepath.Join(r.Dir(), "operator-cache"))
	}
	t.Run("while nodes run and hosts fail", look)
	list(t, r, "instance-2", "instance-3")
	gone(t, r, "instance-1")
	t.Run("after a removal", look)
	t.Run("and this would have been noticed", func(t *testing.T) {
		if text := string(log.all()); !strings.Contains(text, "AuthenticationFailed") || !strings.Contains(text, `"level"=1`) {
			t.Error("the log tells nothing")
		}
		for what, values := range kept {
			if len(values) < 2 {
				t.Errorf("of %s there are only %d values to look for", what, len(values))
			}
		}
	})
}

// damagedKey is a private key whose envelope cannot be read, with other secret content than the good one's.
func damagedKey(key []byte) []byte {
	text := strings.ReplaceAll(string(key), "\n", "A\n")
	return []byte(strings.ReplaceAll(strings.ReplaceAll(text, "-----A", "-----"), "OPENSSH", "RSA"))
}

// addKubeletKeys enters the keys that were made on a host.
func (s secrets) addKubeletKeys(t *testing.T, h *rig.Host) {
	t.Helper()
	entries, err := h.Machine().Drive().ReadDir(pki)
	must(t, err)
	for _, entry := range entries {
		if entry.Directory {
			continue
		}
		data, err := h.Machine().Drive().ReadFile(entry.Path)
		must(t, err)
		if _, key, found := bytes.Cut(data, []byte("-----BEGIN EC PRIVATE KEY")); found {
			s.add("the key in "+entry.Name+" of "+h.Options.Name, append([]byte("-----BEGIN EC PRIVATE KEY"), key...))
		}
	}
}

// expectNoneInCluster looks at every object of the API and at the audit log.
func (s secrets) expectNoneInCluster(t *testing.T, r *rig.Rig) {
	t.Helper()
	config := rest.CopyConfig(r.Config)
	config.WarningHandler = rest.NoWarnings{} // of kinds that are going out of use
	kinds, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	must(t, err)
	client := dynamic.NewForConfigOrDie(config)
	seen := map[string]int{}
	for _, group := range kinds {
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			version, err := schema.ParseGroupVersion(group.GroupVersion)
			must(t, err)
			objects, err := client.Resource(version.WithResource(kind.Name)).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			for _, object := range objects.Items {
				if object.GetKind() == "Secret" && object.GetName() == "cloud-private-key" {
					continue // where the key belongs
				}
				text, err := json.Marshal(object.Object)
				must(t, err)
				seen[object.GetKind()]++
				s.expectNone(t, fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName()), text)
			}
		}
	}
	for _, kind := range []string{"Node", "WindowsInstance", "CertificateSigningRequest", "Event", "ConfigMap"} {
		if seen[kind] == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
	audit, err := os.ReadFile(r.Cluster().AuditLog)
	must(t, err)
	s.expectNone(t, "the audit log", audit)
}

// expectNoneOnHost looks at every file that not only administrators may read, at the agent's own files, and at all command lines.
func (s secrets) expectNoneOnHost(t *testing.T, h *rig.Host) {
	t.Helper()
	files := h.Machine().Snapshot().Files
	for path, file := range files {
		if file.Directory || file.LinkTarget != "" || strings.HasPrefix(path, pki) && private(path, func(p string) host.Access { return files[p].Access }) {
			continue
		}
		content, err := h.Machine().Drive().ReadFile(path)
		must(t, err)
		s.expectNone(t, path+" of "+h.Options.Name, content)
	}
	for _, entry := range h.Machine().Journal().Entries(nil) {
		s.expectNone(t, "a command line or message of "+h.Options.Name, []byte(entry.Detail))
	}
}

// private tells whether only administrators may read a path: by its own access, or by that of a folder above it.
func private(path string, access func(string) host.Access) bool {
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

func (s secrets) expectNoneInFolder(t *testing.T, folder string) {
	t.Helper()
	must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		s.expectNone(t, path, data)
		return err
	}))
}
