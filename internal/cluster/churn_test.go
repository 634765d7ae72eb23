package cluster

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// digestOf returns the digest of a node's NodeSpec in a cluster.
func digestOf(t *testing.T, f *fixture) string {
	t.Helper()
	in := nodeInputs()
	in.Cluster, _ = f.readValid(t)
	in.Cluster.Network.HybridClusterNetworks = []string{"10.132.0.0/14"}
	spec, err := nodespec.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Digest()
}

// Equivalent spellings of settings, or settings that Windows nodes do not follow, must not change a node.
func TestRead_EquivalentSettingsMakeSameNode(t *testing.T) {
	one, two := newAuthorityPEM(t, "one"), newAuthorityPEM(t, "two")
	type settings struct {
		bundle, registryCA, auths, noProxy, kubelet string
		sources                                     configv1.RegistrySources
		mirrors                                     []client.Object
	}
	usual := func() settings {
		return settings{
			bundle: one + two, registryCA: one + two, noProxy: "a.example.com,10.0.0.0/8", kubelet: "maxPods: 100\nevictionHard: {memory.available: 1Gi, nodefs.available: 10%}\n",
			auths:   `{"m.example.com":{"auth":"` + encodeBase64("u:p") + `"},"quay.io":{"auth":"` + encodeBase64("q:p") + `"},"cloud.openshift.com":{"auth":"` + encodeBase64("c:1") + `"}}`,
			sources: configv1.RegistrySources{InsecureRegistries: []string{"a.io", "b.io"}, BlockedRegistries: []string{"c.io", "d.io"}},
			mirrors: []client.Object{digestMirrors("a", digestEntry("quay.io", "m.example.com"), digestEntry("gcr.io", "n.example.com")), digestMirrors("b", digestEntry("quay.io", "n.example.com"))},
		}
	}
	cluster := func(s settings) *fixture {
		f := withObjects(t, append(s.mirrors, imageWith(s.sources), pullSecretWith(`{"auths":`+s.auths+`}`),
			proxyWith(configv1.ProxyStatus{HTTPProxy: "http://proxy:3128", NoProxy: s.noProxy}))...)
		f.files[kubeletConfigPath] = file{content: kubeletConfig + s.kubelet}
		f.clientCA = registryCA(machineconfigv1.ImageRegistryBundle{File: "m.example.com", Data: []byte(s.registryCA)})
		f.clientCA.Spec.AdditionalTrustBundle = []byte(s.bundle)
		return f
	}
	f := cluster(usual())
	api, kubelet := f.rootCA, f.files[kubeletCAPath]
	digest := func(s settings) string {
		f := cluster(s)
		f.rootCA, f.files[kubeletCAPath] = api, kubelet
		return digestOf(t, f)
	}
	before := digest(usual())
	for name, change := range map[string]func(*settings){
		"the same again":                         func(*settings) {},
		"authorities in another order":           func(s *settings) { s.bundle, s.registryCA = two+one, two+one },
		"authorities with comments and twice":    func(s *settings) { s.bundle = "# Corporate\n" + one + "\n\n# again\n" + one + two },
		"authorities with Windows' line ends":    func(s *settings) { s.bundle = strings.ReplaceAll(s.bundle, "\n", "\r\n") },
		"exceptions of the proxy in other order": func(s *settings) { s.noProxy = " 10.0.0.0/8, a.example.com,,a.example.com" },
		"the pull secret in other words": func(s *settings) {
			s.auths = ` { "quay.io":{"email":"x","username":"q","password":"p"}, "m.example.com":{"auth":"` + strings.TrimRight(encodeBase64("u:p"), "=") + `"}}`
		},
		"a token for reporting":         func(s *settings) { s.auths = strings.ReplaceAll(s.auths, encodeBase64("c:1"), encodeBase64("c:2")) },
		"an entry that no node can use": func(s *settings) { s.auths = strings.Replace(s.auths, "{", `{"x.io":{"registrytoken":"t"},`, 1) },
		"lists of registries in other order": func(s *settings) {
			s.sources = configv1.RegistrySources{InsecureRegistries: []string{"b.io", "A.io", "a.io"}, BlockedRegistries: []string{"d.io", "c.io"}}
		},
		"registries that are searched": func(s *settings) { s.sources.ContainerRuntimeSearchRegistries = []string{"quay.io"} },
		"a mirror that no node can ask": func(s *settings) {
			s.mirrors = append(s.mirrors, digestMirrors("c", digestEntry("gcr.io/a", "n.example.com/b")))
		},
		"entries of mirrors in other order": func(s *settings) {
			s.mirrors[0] = digestMirrors("a", digestEntry("gcr.io", "n.example.com"), digestEntry("quay.io", "m.example.com"))
		},
		"mirrors that were made the other way": func(s *settings) { s.mirrors[0], s.mirrors[1] = s.mirrors[1], s.mirrors[0] },
		"a kubelet's field of Linux only":      func(s *settings) { s.kubelet += "cgroupDriver: systemd\ntopologyManagerPolicy: best-effort\n" },
		"the kubelet's fields in other order": func(s *settings) {
			s.kubelet = "evictionHard:\n  nodefs.available: 10%\n  memory.available: 1Gi\nmaxPods: 100\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := usual()
			change(&s)
			if digest(s) != before {
				t.Error("the node is made anew")
			}
		})
	}
	t.Run("but another password is another node", func(t *testing.T) {
		s := usual()
		s.auths = strings.Replace(s.auths, encodeBase64("u:p"), encodeBase64("u:q"), 1)
		if digest(s) == before {
			t.Error("it is the same")
		}
	})
}
