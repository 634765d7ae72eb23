package cluster

import (
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// withObjects returns a valid cluster with optional objects.
func withObjects(t *testing.T, objects ...client.Object) *fixture {
	f := newFixture(t)
	f.optional = objects
	return f
}

// readValid reads a valid cluster.
func (f *fixture) readValid(t *testing.T) (nodespec.Cluster, []Notice) {
	t.Helper()
	facts, notices, err := Read(t.Context(), f.newClient(t), operatorNamespace, nodespec.ServingCertificate{})
	if err != nil {
		t.Fatal(err)
	}
	return facts, notices
}

// expectNotices expects one notice for each text, in this order.
func expectNotices(t *testing.T, got []Notice, want ...string) {
	t.Helper()
	for i, notice := range got {
		if notice.Object == "" || notice.Message == "" {
			t.Errorf("notice %d says nothing of its object: %+v", i, notice)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d notices, want %d: %s", len(got), len(want), got)
	}
	for i := range want {
		for _, part := range strings.Split(want[i], "|") {
			if !strings.Contains(got[i].String(), part) {
				t.Errorf("notice %q does not say %q", got[i], part)
			}
		}
	}
}

func proxyWith(status configv1.ProxyStatus) *configv1.Proxy {
	return &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: status}
}

func imageWith(sources configv1.RegistrySources) *configv1.Image {
	return &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec: configv1.ImageSpec{RegistrySources: sources}}
}

func pullSecretWith(content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "pull-secret"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{".dockerconfigjson": []byte(content)},
	}
}

func digestMirrors(name string, entries ...configv1.ImageDigestMirrors) *configv1.ImageDigestMirrorSet {
	return &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: entries}}
}

func tagMirrors(name string, entries ...configv1.ImageTagMirrors) *configv1.ImageTagMirrorSet {
	return &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1.ImageTagMirrorSetSpec{ImageTagMirrors: entries}}
}

func digestEntry(source string, mirrors ...configv1.ImageMirror) configv1.ImageDigestMirrors {
	return configv1.ImageDigestMirrors{Source: source, Mirrors: mirrors}
}

func tagEntry(source string, mirrors ...configv1.ImageMirror) configv1.ImageTagMirrors {
	return configv1.ImageTagMirrors{Source: source, Mirrors: mirrors}
}

// describeRegistry returns the settings of a registry for nodes, in one line.
func describeRegistry(registry nodespec.Registry) string {
	var b strings.Builder
	b.WriteString(registry.Host)
	describe := func(flag bool, text string) {
		if flag {
			b.WriteString(" " + text)
		}
	}
	describe(registry.Blocked, "blocked")
	describe(registry.Allowed, "allowed")
	describe(registry.Insecure, "insecure")
	describe(registry.CA != "", "CA")
	for _, mirror := range registry.Mirrors {
		fmt.Fprintf(&b, " <- %s/%s", mirror.Host, mirror.Path)
		describe(mirror.Tags, "tags")
		describe(mirror.Insecure, "insecure")
		describe(mirror.CA != "", "CA")
		describe(mirror.Authorization != "", "authorized")
	}
	describe(registry.NeverContact, "never")
	return b.String()
}

func expectRegistries(t *testing.T, got nodespec.Registries, want ...string) {
	t.Helper()
	var lines []string
	for _, registry := range got.Hosts {
		lines = append(lines, describeRegistry(registry))
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("registries are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestRead_NoSettingsInEmptyCluster(t *testing.T) {
	for name, f := range map[string]*fixture{
		"because their objects are not there": newFixture(t),
		"because they are empty": withObjects(t, proxyWith(configv1.ProxyStatus{}), imageWith(configv1.RegistrySources{}),
			pullSecretWith(`{"auths":{}}`),
			digestMirrors("a"), tagMirrors("a"),
			&machineconfigv1.ControllerConfig{ObjectMeta: metav1.ObjectMeta{Name: "machine-config-controller"}}),
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := f.readValid(t)
			expectNotices(t, notices)
			if facts.Proxy != (nodespec.Proxy{}) || facts.TrustedCAs != nil ||
				facts.MetricsServing != (nodespec.ServingCertificate{}) {
				t.Errorf("got %+v", facts)
			}
			if r := facts.Registries; r.Hosts != nil || r.Credentials != nil || r.OnlyAllowed {
				t.Errorf("got %+v", r)
			}
		})
	}
}
