package plan_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// On a configured host, each of these differences results in exactly these steps.
func TestMake(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*model, *nodespec.NodeSpec)
		want   []string
	}{
		"nothing differs": {func(*model, *nodespec.NodeSpec) {}, nil},
		"C:\\k is open to others": {
			func(m *model, _ *nodespec.NodeSpec) { m.Files[nodespec.Root] = plan.FileFact{Directory: true} },
			[]string{`MakeDirectory C:\k`},
		},
		//
		"a configuration file has the line ends of Windows": {
			func(m *model, s *nodespec.NodeSpec) {
				content := []byte(strings.ReplaceAll(s.Files[0].Content, "\n", "\r\n"))
				m.Files[s.Files[0].Path] = plan.FileFact{SHA256: plan.Digest(content), Text: plan.TextDigest(content)}
			}, nil,
		},
		// one restart, and only of the service that reads the file
		"a configuration file really differs": {
			func(_ *model, s *nodespec.NodeSpec) { s.Files[3].Content = "other ${SOURCE_VIP}\n" },
			[]string{"StopService kube-proxy", `WriteFile C:\k\kube-proxy.conf`, "StartService kube-proxy"},
		},
		"a service was started with a former command line": {
			func(m *model, _ *nodespec.NodeSpec) {
				service := m.Services["kube-proxy"]
				service.RunningCommandLine = "former.exe"
				m.Services["kube-proxy"] = service
			},
			[]string{"StopService kube-proxy", "StartService kube-proxy"},
		},
		"only the description of a service differs": {
			func(m *model, _ *nodespec.NodeSpec) {
				service := m.Services["containerd"]
				service.Description = "other"
				m.Services["containerd"] = service
			},
			[]string{"ConfigureService containerd"},
		},
		"a service is stopped": {
			func(m *model, _ *nodespec.NodeSpec) { m.stop("kube-proxy") },
			[]string{"StartService kube-proxy"},
		},
		"the pod subnet is not known for a while": {
			func(_ *model, s *nodespec.NodeSpec) { s.Network.PodSubnet = "" }, nil,
		},
		// the order matters
		"the host was restarted": {
			func(m *model, _ *nodespec.NodeSpec) { m.rebootHost() },
			[]string{
				`RemovePath C:\k\cni\cni.conf`, "AddRoute 169.254.169.254/32", "StartService kubelet", "StartService overlay", "AwaitNetwork OVN",
				"CreateEndpoint VIP", "AttachEndpoint VIP",
			},
		},
		"the host was restarted and the network is there": {
			func(m *model, _ *nodespec.NodeSpec) {
				m.rebootHost()
				m.start("overlay")
			},
			[]string{"AddRoute 169.254.169.254/32", "CreateEndpoint VIP", "AttachEndpoint VIP"},
		},
		"the endpoint is there, and the host does not have it": {
			func(m *model, _ *nodespec.NodeSpec) { m.Endpoints[0].Attached = false }, []string{"AttachEndpoint VIP"},
		},
		"kube-proxy does not run, and the host does not have the endpoint": {
			func(m *model, _ *nodespec.NodeSpec) {
				m.stop("kube-proxy")
				m.Endpoints[0].Attached = false
			}, []string{"AttachEndpoint VIP"},
		},
		"the adapter of the endpoint registers in DNS": {
			func(m *model, _ *nodespec.NodeSpec) { m.RegisteringAdapter = "{a}" }, []string{"DisableDNSRegistration VIP"},
		},
		"it registers, and Windows refused the change in an earlier boot": {
			func(m *model, _ *nodespec.NodeSpec) {
				m.RegisteringAdapter, m.Ledger.RegistrationRefusal = "{a}", &plan.Refusal{BootID: "earlier"}
			}, []string{"DisableDNSRegistration VIP"},
		},
		"it registers, and Windows refused the change in this boot": {
			func(m *model, _ *nodespec.NodeSpec) {
				m.RegisteringAdapter, m.Ledger.RegistrationRefusal = "{a}", &plan.Refusal{BootID: m.System.BootID}
			}, nil,
		},
		"it registers, and the network is made anew, with another adapter": {
			func(m *model, _ *nodespec.NodeSpec) { m.RegisteringAdapter, m.Endpoints[0].Attached = "{a}", false },
			[]string{"AttachEndpoint VIP"},
		},
		//
		"the node has another subnet": {
			func(_ *model, s *nodespec.NodeSpec) { s.Network.PodSubnet = "10.132.2.0/24" },
			[]string{`RemovePath C:\k\cni\cni.conf`, "AwaitNetwork OVN"},
		},
		"the pod subnet is not known, and the network is gone": {
			func(m *model, s *nodespec.NodeSpec) { s.Network.PodSubnet, m.Networks, m.Endpoints = "", nil, nil },
			[]string{`RemovePath C:\k\cni\cni.conf`},
		},
		"an authority is gone from the store": {
			func(m *model, _ *nodespec.NodeSpec) { m.TrustedCertificates = nil }, []string{"TrustCertificate CN=Example CA (aa01)"},
		},
		"the route is gone": {
			func(m *model, _ *nodespec.NodeSpec) { m.Routes = nil }, []string{"AddRoute 169.254.169.254/32"},
		},
		"the route is gone with the default route": {
			func(m *model, _ *nodespec.NodeSpec) { m.Routes, m.NoDefaultRoute = nil, true }, nil,
		},
		"others may read a secret": {
			func(m *model, _ *nodespec.NodeSpec) {
				fact := m.Files[`C:\k\config.json`]
				fact.Access = host.AccessInherited
				m.Files[`C:\k\config.json`] = fact
			},
			[]string{`WriteFile C:\k\config.json`},
		},
		"the certificate expired": {
			func(m *model, _ *nodespec.NodeSpec) { m.Time = now.Add(2 * time.Hour) },
			[]string{"RequestCertificate system:node:a"},
		},
		"a service is not wanted any more": {
			func(_ *model, s *nodespec.NodeSpec) { s.Services = slices.Delete(s.Services, 3, 4) },
			[]string{"StopService kube-proxy", "DeleteService kube-proxy"},
		},
		"a feature is off": {
			func(m *model, _ *nodespec.NodeSpec) { m.Features["Containers"] = host.FeatureDisabled },
			[]string{"EnableFeature Containers", "Reboot"},
		},
		"a program on the disk is damaged": {
			func(m *model, s *nodespec.NodeSpec) {
				m.Files[s.Releases[2].Path(s.Releases[2].Files[0])] = plan.FileFact{SHA256: "other"}
			},
			[]string{"StopService kube-proxy", "StopService overlay", "InstallRelease overlay", "StartService overlay", "StartService kube-proxy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newConfiguredModel(t)
			test.change(m, &spec)
			if got := namesOfSteps(plan.Make(m.Facts, spec).Steps); !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestMake_InstallsOnlyMatchingCertificate(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		certificate string
		installs    bool
	}{
		"for the key that waits":            {nodeCertificate(), true},
		"for another key":                   {newCertificatePEM("system:node:a", other, now.Add(time.Hour)), false},
		"for another node":                  {newCertificatePEM("system:node:b", key(), now.Add(time.Hour)), false},
		"expired":                           {newCertificatePEM("system:node:a", key(), now), false},
		"none":                              {"", false},
		"something that is no certificate":  {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false},
		"something that is not even in PEM": {"certificate", false},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newConfiguredModel(t)
			m.Identity = plan.IdentityFacts{Request: newRequestPEM("system:node:a", "system:nodes")}
			spec.Identity.Certificate = test.certificate
			p := plan.Make(m.Facts, spec)
			if installs := slices.Contains(namesOfSteps(p.Steps), "InstallCertificate system:node:a"); installs != test.installs {
				t.Errorf("taken: %t", installs)
			}
			if needed := slices.Contains(p.Needs, nodespec.NeedCertificate); needed == test.installs {
				t.Errorf("needed: %t", needed)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	t.Run("C:\\k that holds only the agent was made for it", func(t *testing.T) {
		if plan.Record(newModel().Facts, smallSpec()).Paths[nodespec.Root].Existed {
			t.Error("it counts as there before")
		}
	})
	t.Run("what is in the ledger stays as it is", func(t *testing.T) {
		m, spec := newConfiguredModel(t)
		before := m.Ledger
		after := plan.Record(m.Facts, spec)
		if after.HostName != before.HostName || after.Services["kubelet"] != nil || after.Paths[`C:\var`].Existed {
			t.Errorf("%+v", after)
		}
	})
	t.Run("a node that joins again while it is removed is repaired again", func(t *testing.T) {
		m, spec := newConfiguredModel(t)
		m.Ledger.Removing = true
		if plan.Record(m.Facts, spec).Removing {
			t.Error("it is still marked as being removed")
		}
	})
}

func TestName(t *testing.T) {
	secret := nodespec.File{Path: `C:\k\f`, Content: "content"}
	if name := plan.Name(plan.WriteFile{File: secret}); name != `WriteFile C:\k\f` {
		t.Error(name)
	}
	authority := nodespec.TrustedCertificate{Fingerprint: strings.Repeat("ab", 32),
		Subject: "CN=a\r\nb\u202e" + strings.Repeat("c", 200)}
	if name, want := plan.Name(plan.TrustCertificate{Certificate: authority}), "TrustCertificate CN=ab"+strings.Repeat("c",
		95)+"... (abababababab)"; name != want {
		t.Errorf("got %q, want %q", name, want)
	}
	if name := plan.Name(plan.DistrustCertificate{Fingerprint: authority.Fingerprint}); name != "DistrustCertificate abababababab" {
		t.Error(name)
	}
	if name := plan.Name(plan.SetEnvironment{Name: "HTTPS_PROXY",
		Value: "http://user:secret@proxy"}); strings.Contains(name, "secret") {
		t.Error(name)
	}
}
