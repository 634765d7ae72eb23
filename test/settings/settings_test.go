package settings

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Services that run pods or their network. A restart of a service restarts its dependent services, too.
var (
	allOfPods     = []string{"containerd", "hybrid-overlay-node", "kube-proxy", "kubelet"}
	fromKubeletOn = []string{"hybrid-overlay-node", "kube-proxy", "kubelet"}
	fromOverlayOn = []string{"hybrid-overlay-node", "kube-proxy"}
)

const registries = `C:\k\containerd\registries`

// readHostFile returns a file of a host, or "" if the file does not exist.
func readHostFile(h *testenv.Host, path string) string {
	data, err := h.Machine().Drive().ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

// checkFileContains checks that a file of a host contains the expected texts.
func checkFileContains(t *testing.T, h *testenv.Host, path string, desired ...string) {
	t.Helper()
	for _, want := range desired {
		if text := readHostFile(h, path); !strings.Contains(text, want) {
			t.Errorf("host %s: %s holds no %q:\n%s", h.Options.Name, path, want, text)
		}
	}
}

// checkAdministratorsOnly checks that only administrators may read a file of a host.
func checkAdministratorsOnly(t *testing.T, h *testenv.Host, path string) {
	t.Helper()
	if access := takeSnapshot(h).Files[path].Access; access != host.AccessAdministrators {
		t.Errorf("host %s: %s may be read by %q", h.Options.Name, path, access)
	}
}

// L-01
func TestStoryTheProxy(t *testing.T) {
	l := sharedLab(t)
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			return l.SetProxy(ctx, configv1.ProxySpec{
				HTTPProxy: "http://user:canary@proxy.example.com:3128", HTTPSProxy: "http://proxy.example.com:3128",
				NoProxy: "corp.example.com",
			})
		},
		unset:    func(ctx context.Context) error { return l.SetProxy(ctx, configv1.ProxySpec{}) },
		changes:  []string{"service containerd: environment", "service kubelet: environment"},
		restarts: allOfPods, disrupts: true,
		inspect: func(t *testing.T, h *testenv.Host) {
			environment := strings.Join(takeSnapshot(h).Services["containerd"].Config.Environment, "\n")
			for _, want := range []string{"HTTP_PROXY=http://user:canary@proxy.example.com:3128",
				"HTTPS_PROXY=http://proxy.example.com:3128",
				"corp.example.com", "10.132.0.0/14", "172.30.0.0/16", "169.254.169.254", ".svc", "localhost"} {
				if !strings.Contains(environment, want) {
					t.Errorf("host %s: no %s among\n%s", h.Options.Name, want, environment)
				}
			}
			checkFileContains(t, h, `C:\var\log\containerd\containerd.log`, "HTTP_PROXY=http://user:xxxxx@proxy.example.com:3128")
			if environment := takeSnapshot(h).Environment["HTTP_PROXY"]; environment != "" {
				t.Errorf("host %s: the machine's environment has the proxy %s", h.Options.Name, environment)
			}
		},
	})
}

// L-01
func TestTrustedAuthorities(t *testing.T) {
	l := sharedLab(t)
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	roots := []string{"root " + first.fingerprint + ": added", "root " + second.fingerprint + ": added"}
	slices.Sort(roots)
	l.checkSetting(setting{
		set:     func(ctx context.Context) error { return l.SetTrustedCAs(ctx, first.pem+second.pem) },
		unset:   func(ctx context.Context) error { return l.SetTrustedCAs(ctx, "") },
		changes: roots,
	})
}

// L-02, L-03
func TestMirrors(t *testing.T) {
	l := sharedLab(t)
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			err := l.SetDigestMirrors(ctx, configv1.ImageDigestMirrors{
				Source: "quay.io/team", Mirrors: []configv1.ImageMirror{"mirror.example.com:5000/cache/team"},
			})
			if err != nil {
				return err
			}
			return l.SetTagMirrors(ctx, configv1.ImageTagMirrors{
				Source: "registry.example.com:8443", Mirrors: []configv1.ImageMirror{"mirror.example.com:5000"},
				MirrorSourcePolicy: configv1.NeverContactSource,
			})
		},
		unset: func(ctx context.Context) error {
			if err := l.SetTagMirrors(ctx); err != nil {
				return err
			}
			return l.SetDigestMirrors(ctx)
		},
		changes: []string{
			"file " + registries + `\quay.io\hosts.toml: added`,
			"file " + registries + `\registry.example.com_8443_\hosts.toml: added`,
			"folder " + registries + `\quay.io: added`, "folder " + registries + `\registry.example.com_8443_: added`,
		},
		inspect: func(t *testing.T, h *testenv.Host) {
			checkFileContains(t, h, registries+`\quay.io\hosts.toml`, "mirror.example.com:5000")
			checkFileContains(t, h, registries+`\registry.example.com_8443_\hosts.toml`, "mirror.example.com:5000", "resolve")
		},
	})
}

// L-02
func TestRegistryAuthorities(t *testing.T) {
	l := sharedLab(t)
	ca := newAuthority(t, "registry")
	dir := registries + `\registry.example.com_5000_`
	sum := sha256.Sum256([]byte(ca.pem))
	file := fmt.Sprintf(`%s\ca-%x.pem`, dir, sum[:6])
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			return l.SetRegistryCAs(ctx, map[string]string{"registry.example.com..5000": ca.pem})
		},
		unset: func(ctx context.Context) error { return l.SetRegistryCAs(ctx, nil) },
		changes: []string{"file " + file + ": added", "file " + dir + `\hosts.toml: added`,
			"folder " + dir + ": added"},
		inspect: func(t *testing.T, h *testenv.Host) {
			checkFileContains(t, h, dir+`\hosts.toml`, fmt.Sprintf("ca-%x.pem", sum[:6]))
			checkFileContains(t, h, file, ca.pem)
		},
	})
}

// L-02
func TestInsecureAndBlockedRegistries(t *testing.T) {
	l := sharedLab(t)
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			return l.SetRegistrySources(ctx, configv1.RegistrySources{
				InsecureRegistries: []string{"insecure.example.com:5000"}, BlockedRegistries: []string{"blocked.example.com"},
			})
		},
		unset: func(ctx context.Context) error { return l.SetRegistrySources(ctx, configv1.RegistrySources{}) },
		changes: []string{
			"file " + registries + `\blocked.example.com\hosts.toml: added`,
			"file " + registries + `\insecure.example.com_5000_\hosts.toml: added`,
			"folder " + registries + `\blocked.example.com: added`,
			"folder " + registries + `\insecure.example.com_5000_: added`,
		},
		inspect: func(t *testing.T, h *testenv.Host) {
			checkFileContains(t, h, registries+`\insecure.example.com_5000_\hosts.toml`, "skip_verify = true")
			checkFileContains(t, h, registries+`\blocked.example.com\hosts.toml`, ".invalid")
		},
	})
}

// L-02
func TestPullSecret(t *testing.T) {
	l := sharedLab(t)
	const file = `C:\var\lib\kubelet\config.json`
	var before []byte
	l.checkSetting(setting{
		set: func(ctx context.Context) (err error) {
			before, err = l.SetPullSecret(ctx,
				[]byte(`{"auths":{"cloud.openshift.com":{"auth":"Y2xvdWQ6Y2FuYXJ5"},"quay.io/team":{"auth":"dXNlcjpjYW5hcnk="}}}`))
			return err
		},
		unset: func(ctx context.Context) error {
			_, err := l.SetPullSecret(ctx, before)
			return err
		},
		changes: []string{"file " + file + ": changed"},
		inspect: func(t *testing.T, h *testenv.Host) {
			checkAdministratorsOnly(t, h, file)
			checkFileContains(t, h, file, "quay.io/team", "dXNlcjpjYW5hcnk=")
			if strings.Contains(readHostFile(h, file), "cloud.openshift.com") {
				t.Errorf("host %s has the credentials of what is no registry", h.Options.Name)
			}
		},
	})
}

//
func TestExporterCertificate(t *testing.T) {
	l := sharedLab(t)
	first, second := newAuthority(t, "exporter"), newAuthority(t, "exporter")
	const key = `C:\k\tls\certs\tls.key`
	set := func(ctx context.Context) error { return l.SetExporterTLS(ctx, []byte(first.pem), []byte(first.key)) }
	unset := func(ctx context.Context) error { return l.SetExporterTLS(ctx, nil, nil) }
	l.checkSetting(setting{
		set: set, unset: unset,
		changes: []string{
			`file C:\k\tls\certs\client-ca.crt: added`, `file C:\k\tls\certs\tls.crt: added`, `file C:\k\tls\certs\tls.key: added`,
			`file C:\k\tls\windows-exporter-webconfig.yaml: added`,
			"service windows_exporter: command line",
		},
		restarts: []string{"windows_exporter"},
		inspect: func(t *testing.T, h *testenv.Host) {
			checkAdministratorsOnly(t, h, key)
			kubelets := []byte(readHostFile(h, `C:\var\lib\kubelet\pki\kubelet-client-current.pem`))
			for client, want := range map[string][]byte{"without a certificate": nil, "with one of the cluster": kubelets} {
				status, body, err := h.Machine().Host().Probes.HTTPGet(t.Context(), "https://127.0.0.1:9182/metrics", want)
				if refused := status == 403; err != nil || refused != (want == nil) || !refused && status != 200 {
					t.Errorf("host %s: a client %s gets %d, %s, error %v", h.Options.Name, client, status, body, err)
				}
			}
		},
	})
	t.Run("a new one is served without a restart", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.changeSetting("the exporter's certificate", set)
		l.checkSetting(setting{
			set: func(ctx context.Context) error {
				return l.SetExporterTLS(ctx, []byte(second.pem), []byte(second.key))
			}, unset: set,
			changes: []string{`file C:\k\tls\certs\tls.crt: changed`, `file C:\k\tls\certs\tls.key: changed`},
		})
		var before string
		l.checkSetting(setting{ // during a rotation, both exist for a while
			set: func(ctx context.Context) (err error) {
				if before, err = l.SetMetricsClientCAs(ctx, ""); err == nil {
					_, err = l.SetMetricsClientCAs(ctx, before+first.pem)
				}
				return err
			},
			unset: func(ctx context.Context) error {
				_, err := l.SetMetricsClientCAs(ctx, before)
				return err
			},
			changes: []string{`file C:\k\tls\certs\client-ca.crt: changed`},
			inspect: func(t *testing.T, h *testenv.Host) {
				both := append(strings.SplitAfter(before, "-----END CERTIFICATE-----\n"), first.pem) // in any order
				checkFileContains(t, h, `C:\k\tls\certs\client-ca.crt`, both...)
			},
		})
		l.changeSetting("the exporter without one", unset)
	})
}

//
func TestKubeletSettings(t *testing.T) {
	l := sharedLab(t)
	before := l.takeSnapshots()
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			settings := map[string]any{"maxPods": 77, "podPidsLimit": 2048} // The second setting is only for Linux.
			if err := firstError(l.PausePool(ctx, true), l.SetKubeletSettings(ctx, settings)); err != nil {
				return err
			}
			l.awaitCondition("the paused pool to have another target", &machineconfigv1.MachineConfigPool{}, isPoolUpdating)
			l.waitForIdle()
			for _, h := range l.Hosts() {
				if got := diffSnapshots(before[h.Options.Name], takeSnapshot(h)); len(got) > 0 {
					t.Errorf("host %s follows a pool that is paused: %s", h.Options.Name, got)
				}
			}
			return l.PausePool(ctx, false)
		},
		unset:    func(ctx context.Context) error { return l.SetKubeletSettings(ctx, nil) },
		changes:  []string{`file C:\k\kubelet.conf: changed`},
		restarts: fromKubeletOn, disrupts: true,
		inspect: func(t *testing.T, h *testenv.Host) {
			checkFileContains(t, h, `C:\k\kubelet.conf`, `"maxPods": 77`)
			node := lab{t, l.Environment}.nodeOf(h)
			if pods := node.Status.Capacity.Pods().Value(); pods != 77 {
				t.Errorf("node %s takes %d pods", node.Name, pods)
			}
		},
	})
}

// isPoolUpdating reports whether the worker pool has a target configuration that its machines do not run yet.
func isPoolUpdating(ctx context.Context, reader client.Reader) (bool, error) {
	pool := &machineconfigv1.MachineConfigPool{}
	err := reader.Get(ctx, client.ObjectKey{Name: "worker"}, pool)
	return pool.Spec.Configuration.Name != pool.Status.Configuration.Name, err
}

//
func TestKubeletClientAuthorities(t *testing.T) {
	l := sharedLab(t)
	ca := newAuthority(t, "new kubelet clients")
	var before string
	l.checkSetting(setting{
		set: func(ctx context.Context) (err error) {
			if before, err = l.SetKubeletClientCAs(ctx, ca.pem); err == nil {
				_, err = l.SetKubeletClientCAs(ctx, before+ca.pem) // During a rotation, both exist for a while.
			}
			return err
		},
		unset: func(ctx context.Context) error {
			_, err := l.SetKubeletClientCAs(ctx, before)
			return err
		},
		changes: []string{`file C:\k\kubelet-ca.crt: changed`},
	})
}

//
func TestHybridOverlayPort(t *testing.T) {
	l := sharedLab(t)
	set := func(port *uint32) func(context.Context) error {
		return func(ctx context.Context) error {
			return l.ChangeNetwork(ctx, func(c *operatorv1.OVNKubernetesConfig) {
				c.HybridOverlayConfig.HybridOverlayVXLANPort = port
			})
		}
	}
	l.checkSetting(setting{
		set: set(ptr.To[uint32](9898)), unset: set(nil), changes: []string{"service hybrid-overlay-node: command line"},
		restarts: fromOverlayOn, disrupts: true,
	})
}

//
func TestPodNetworkMTU(t *testing.T) {
	l := sharedLab(t)
	set := func(mtu uint32) func(context.Context) error {
		return func(ctx context.Context) error {
			return l.ChangeNetwork(ctx, func(c *operatorv1.OVNKubernetesConfig) { c.MTU = &mtu })
		}
	}
	l.checkSetting(setting{set: set(1200), unset: set(1400), changes: []string{`file C:\k\cni\config\cni.conf: changed`}})
}

// Concurrent settings cause only one change of each host.
func TestSettings_ConcurrentChangesAppliedOnce(t *testing.T) {
	l := sharedLab(t)
	ca := newAuthority(t, "everything")
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			return firstError(
				l.SetTrustedCAs(ctx, ca.pem), l.SetKubeletSettings(ctx, map[string]any{"maxPods": 99}),
				l.SetProxy(ctx, configv1.ProxySpec{HTTPSProxy: "http://proxy.example.com:3128"}),
			)
		},
		unset: func(ctx context.Context) error {
			return firstError(l.SetTrustedCAs(ctx, ""), l.SetKubeletSettings(ctx, nil), l.SetProxy(ctx, configv1.ProxySpec{}))
		},
		changes: []string{
			`file C:\k\kubelet.conf: changed`, "root " + ca.fingerprint + ": added", "service containerd: environment",
			"service kubelet: environment",
		},
		restarts: allOfPods, disrupts: true,
	})
}

// firstError returns the first error.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("change a setting: %w", err)
		}
	}
	return nil
}
