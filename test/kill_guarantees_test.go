package test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// sightings records the identities that were ever seen in the API, keyed by owner. Each owner must have exactly one
// identity.
type sightings struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
}

// observeIdentities records the identities in the API until the test ends.
func observeIdentities(t *testing.T, r *testenv.Environment) *sightings {
	s := &sightings{seen: map[string]map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	for _, list := range []client.ObjectList{&corev1.NodeList{}, &certificatesv1.CertificateSigningRequestList{},
		&v1alpha1.WindowsInstanceList{}} {
		watch, err := r.Client.Watch(ctx, list)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for event := range watch.ResultChan() {
				s.recordObject(event.Object)
			}
		})
	}
	return s
}

func (s *sightings) recordObject(object any) {
	switch o := object.(type) {
	case *corev1.Node:
		s.addIdentity("Node "+o.Name, string(o.UID))
	case *certificatesv1.CertificateSigningRequest:
		if o.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && strings.HasPrefix(o.Name, "wmco-") {
			s.addIdentity("client certificate request of "+o.Name[:strings.LastIndexByte(o.Name, '-')], string(o.UID))
		}
	case *v1alpha1.WindowsInstance:
		s.addIdentity("instance "+o.Name, string(o.UID))
		if o.Status.HostKey != nil {
			s.addIdentity("host key of "+o.Name, o.Status.HostKey.Fingerprint)
		}
	}
}

func (s *sightings) addIdentity(owner, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[owner] == nil {
		s.seen[owner] = map[string]bool{}
	}
	s.seen[owner][identity] = true
}

// checkUnique checks that no identity was created twice.
func (s *sightings) checkUnique(t *testing.T, atLeast int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) < atLeast {
		t.Errorf("only %d identities were seen, want %d", len(s.seen), atLeast)
	}
	for _, owner := range slices.Sorted(maps.Keys(s.seen)) {
		if identities := s.seen[owner]; len(identities) != 1 {
			t.Errorf("%s: there were %d: %v", owner, len(identities), slices.Collect(maps.Keys(identities)))
		}
	}
}

// testEndpoint is created and removed by each verification, however often that runs.
const testEndpoint = "wmco-check"

// countOnceSteps counts the journal entries of a host that must be as many as on an undisturbed host: restarts, keys,
// services configured and started.
func countOnceSteps(h *testenv.Host) map[string]int {
	counts := map[string]int{}
	for _, e := range h.Machine().Journal().Entries(nil) {
		switch {
		case e.Kind == fake.KindReboot:
			counts["restart"]++
		case e.Kind == fake.KindWrite && strings.HasSuffix(e.Detail, `\kubelet-client-pending.pem`):
			counts["key of the kubelet"]++
		case e.Kind == fake.KindService && (strings.HasPrefix(e.Detail, "configure ") ||
			strings.HasSuffix(e.Detail, " runs")):
			counts[e.Detail]++
		case e.Kind == fake.KindFeature && strings.HasPrefix(e.Detail, "Enable"):
			counts[e.Detail]++
		case e.Kind == fake.KindNetwork && strings.HasPrefix(e.Detail, "create "):
			if !strings.Contains(e.Detail, testEndpoint) {
				counts[strings.Join(strings.Fields(e.Detail)[:3], " ")]++
			}
		}
	}
	return counts
}

// sentTwice returns the files that arrived on the host more than once.
func sentTwice(h *testenv.Host) []string {
	arrived := map[string]int{}
	for _, e := range h.Machine().Journal().Entries(nil) {
		name, _, partial := strings.Cut(e.Detail, ".partial-")
		if e.Kind == fake.KindFile && e.PID == 0 && partial && strings.HasPrefix(name, "rename ") &&
			!strings.Contains(name, "spec-") {
			arrived[name]++
		}
	}
	maps.DeleteFunc(arrived, func(_ string, times int) bool { return times == 1 })
	return slices.Sorted(maps.Keys(arrived))
}

// checkConfiguredOnce checks that a host configured under kills did not repeat a step that must run once.
func checkConfiguredOnce(t *testing.T, undisturbed map[string]int, h *testenv.Host) {
	t.Helper()
	counts := countOnceSteps(h)
	for what := range maps.Keys(counts) {
		if undisturbed[what] == 0 {
			t.Errorf("host %s: %q was done, on no other host", h.Options.Name, what)
		}
	}
	for what, want := range undisturbed {
		if counts[what] != want {
			t.Errorf("host %s: %q was done %d times, undisturbed %d times", h.Options.Name, what, counts[what], want)
		}
	}
	if twice := sentTwice(h); len(twice) > 0 {
		t.Errorf("host %s was sent again what had arrived: %v", h.Options.Name, twice)
	}
}
