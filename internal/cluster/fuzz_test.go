package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// stored is an API server with at most one object of each kind.
type stored []client.Object

func (s stored) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	for _, o := range s {
		if reflect.TypeOf(o) == reflect.TypeOf(object) {
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(o).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s stored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for _, o := range s {
		switch o := o.(type) {
		case *configv1.ImageDigestMirrorSet:
			if list, ok := list.(*configv1.ImageDigestMirrorSetList); ok {
				list.Items = append(list.Items, *o)
			}
		case *configv1.ImageTagMirrorSet:
			if list, ok := list.(*configv1.ImageTagMirrorSetList); ok {
				list.Items = append(list.Items, *o)
			}
		}
	}
	return nil
}

// nodeInputs returns the inputs of a node without the settings of the cluster.
func nodeInputs() nodespec.Inputs {
	file := func(name string) nodespec.PayloadFile {
		sum := sha256.Sum256([]byte(name))
		return nodespec.PayloadFile{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: 1}
	}
	programs := nodespec.Component{Name: "all", Version: "v1"}
	for _, name := range []string{"containerd.exe", "containerd-shim-runhcs-v1.exe", "kubelet.exe", "kube-proxy.exe",
		"kube-log-runner.exe", "win-overlay.exe",
		"host-local.exe", "win-bridge.exe", "hybrid-overlay-node.exe", "windows_exporter.exe", "csi-proxy.exe"} {
		programs.Files = append(programs.Files, file(name))
	}
	return nodespec.Inputs{Kubernetes: "1.36",
		Cluster: nodespec.Cluster{
			Platform: "None", Version: "5.0.1", APIServerInternalURL: "https://api-int.lab.example.com:6443",
			APIServerCA: "a", KubeletClientCA: "b", ServiceCIDRs: []string{"172.30.0.0/16"},
			Kubelet: nodespec.WorkerKubelet{ClusterDNS: []string{"172.30.0.10"}, ClusterDomain: "cluster.local"},
			Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true,
				HybridClusterNetworks: []string{"10.132.0.0/14"}},
		},
		Instance: nodespec.Instance{Name: "a", NodeName: "win-a", NodeIP: "10.1.42.1", BYOH: true},
		Payload:  []nodespec.Component{programs}, Agent: file("wicd.exe"), OperatorVersion: "1.2.3",
	}
}

// checkSettings reads the settings in the objects. They must cause an *Error or result in a valid node.
func checkSettings(t *testing.T, objects ...client.Object) {
	in, got := nodeInputs(), notices{}
	for _, concern := range []func(context.Context, client.Reader, *nodespec.Cluster) error{readProxy, got.readTrustedCAs,
		got.readRegistries} {
		if err := concern(t.Context(), stored(objects), &in.Cluster); err != nil {
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v", err)
			}
			return
		}
	}
	for _, notice := range got {
		if text := notice.String(); notice.Object == "" || notice.Message == "" ||
			strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
			t.Errorf("notice is %q", notice)
		}
	}
	registries := in.Cluster.Registries
	if !slices.IsSortedFunc(registries.Hosts, func(a, b nodespec.Registry) int {
		return strings.Compare(a.Host, b.Host)
	}) {
		t.Errorf("not sorted: %+v", registries.Hosts)
	}
	for _, registry := range registries.Hosts {
		if !nodespec.IsRegistryHost(registry.Host) {
			t.Errorf("host %q", registry.Host)
		}
		for _, mirror := range registry.Mirrors {
			if s, ok := parseScope((scope{host: mirror.Host, path: mirror.Path}).String()); !ok || s.wildcard {
				t.Errorf("mirror %q, %q", mirror.Host, mirror.Path)
			}
		}
	}
	spec, err := nodespec.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range spec.Files {
		if rest, ok := strings.CutPrefix(f.Path, `C:\`); !ok || strings.ContainsAny(rest, "/:*?\"<>|\x00\n") ||
			strings.Contains(rest, "..") {
			t.Errorf("path %q", f.Path)
		}
	}
	for _, service := range spec.Services {
		for _, variable := range service.Environment {
			if strings.ContainsAny(variable, "\x00\r\n\"") {
				t.Errorf("service %s gets variable %q", service.Name, variable)
			}
		}
	}
}

// L-01
func FuzzProxy(f *testing.F) {
	f.Add("http://user:pass@proxy:3128", "https://[::1]:1", ".svc,10.0.0.0/8, *.x")
	f.Add("http://p\x00", "http://%41:80/", "a\nb")
	f.Add("http://h:80'", "HTTP://u%0a@h", "\u00a0")
	f.Fuzz(func(t *testing.T, httpProxy, httpsProxy, noProxy string) {
		checkSettings(t, proxyWith(configv1.ProxyStatus{HTTPProxy: httpProxy, HTTPSProxy: httpsProxy, NoProxy: noProxy}))
	})
}

// L-01, L-02
func FuzzCertificateBundles(f *testing.F) {
	good := "-----BEGIN CERTIFICATE-----\n" + // with a discarded key
		"MIIBOTCB4aADAgECAgEBMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMTAWEwHhcNNzAw\n-----END CERTIFICATE-----\n"
	f.Add("registry.example.com..5000", []byte(good), []byte(strange))
	f.Add("con..1", []byte("-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----"), []byte(""))
	f.Add("..", []byte("-----BEGIN CERTIFICATE----------BEGIN CERTIFICATE-----"), []byte("x"))
	f.Fuzz(func(t *testing.T, file string, trusted, registry []byte) {
		checkSettings(t, &machineconfigv1.ControllerConfig{Spec: machineconfigv1.ControllerConfigSpec{
			AdditionalTrustBundle: trusted,
			ImageRegistryBundleUserData: []machineconfigv1.ImageRegistryBundle{{File: file, Data: registry},
				{File: file, Data: trusted}},
		}})
	})
}

// L-03
func FuzzMirrorSets(f *testing.F) {
	f.Add("quay.io/a", "m.example.com/a n.example.com:5000/x/a", "quay.io", "*.example.com", "b.io c.io/d *.e", true)
	f.Add("*.quay.io", "quay.io https://x a/../b aux", "aux", "", "", false)
	f.Add("a.b/c", "a.b/c a.b/c d/c\u00e9", "a.b/c", "d", "d", true)
	f.Fuzz(func(t *testing.T, source, mirrors, second, insecure, blocked string, never bool) {
		var list []configv1.ImageMirror
		for _, mirror := range strings.Fields(mirrors) {
			list = append(list, configv1.ImageMirror(mirror))
		}
		slices.Reverse(list)
		first := digestEntry(source, list...)
		if never {
			first.MirrorSourcePolicy = configv1.NeverContactSource
		}
		checkSettings(t, digestMirrors("a", first, digestEntry(second, list...)), tagMirrors("a", tagEntry(second, list...),
			tagEntry(source, configv1.ImageMirror(second))),
			imageWith(configv1.RegistrySources{
				InsecureRegistries: strings.Fields(insecure), BlockedRegistries: strings.Fields(blocked),
				AllowedRegistries: strings.Fields(mirrors),
			}))
	})
}

// L-02
func FuzzPullSecrets(f *testing.F) {
	f.Add([]byte(`{"auths":{"quay.io":{"auth":"dTpw"},"https://index.docker.io/v1/":{"username":"u","password":"p"}}}`),
		"quay.io")
	f.Add([]byte(`{"auths":{"quay.io/a":{"auth":"dTpw\n"},"":{"identitytoken":1},"*":null}}`), "quay.io/a")
	f.Fuzz(func(t *testing.T, content []byte, mirror string) {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.DockerConfigJsonKey: content}}
		checkSettings(t, secret, digestMirrors("a", digestEntry("quay.io", configv1.ImageMirror(mirror))))
	})
}
