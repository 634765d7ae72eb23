package settings

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

const metadataRoute = "169.254.169.254/32"

// newCloudLab boots a lab with a Machine and listed hosts on a cloud.
func newCloudLab(t *testing.T, platform string, options testenv.Options, prepare ...func(context.Context,
	*testenv.Environment) error) (l lab, machine *testenv.Host) {
	t.Helper()
	options.Cluster, options.PayloadDir, options.MachineAPI, options.LinuxNodes = controlPlanes[platform].Cluster(t),
		files.Directory(t), true, 1
	r, err := bootLab(t.Context(), options, prepare...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	l = lab{t, r}
	t.Cleanup(l.explainFailure)
	l.requireNoError(l.CreateMachineSet(t.Context(), "win", 1, testenv.MachineSetOptions{}))
	var names []string
	l.runWithTimeout(waitTimeout, func(ctx context.Context) (err error) {
		names, err = l.WaitMachinesReady(ctx, "win", 1)
		return err
	})
	return l, l.MachineHost(names[0])
}

// waitForRoute waits until a host reaches the metadata service in spite of the adapter of the pod network.
func (l lab) waitForRoute(h *testenv.Host) {
	l.Helper()
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return h.Machine().WaitFor(ctx, func(m *fake.Machine) bool {
			return hasNetwork(h) && slices.Contains(m.AddedRoutes(), metadataRoute)
		})
	})
}

// D-7
func TestCloud_NodesNamedByCloudReachMetadata(t *testing.T) {
	for _, platform := range []string{"AWS", "GCP"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			l, machine := newCloudLab(t, platform, testenv.Options{Hosts: testenv.Hosts(1)})
			for _, h := range []*testenv.Host{l.Host("instance-1"), machine} {
				mark := len(h.Machine().Journal().Entries(nil))
				node := l.nodeOf(h)
				if node.Name != strings.ToLower(h.Options.CloudName) || node.Spec.ProviderID == "" {
					t.Errorf("host %s is node %s, %s", h.Options.Name, node.Name, node.Spec.ProviderID)
				}
				l.waitForRoute(h)
				l.rebootHost(h)
				l.waitForRoute(h)
				l.hasEntriesInOrder(h, mark, "power boot", "route add "+metadataRoute, "service kubelet runs")
			}
			if platform == "AWS" && !strings.HasSuffix(l.nodeOf(machine).Name, ".ec2.internal") {
				t.Errorf("the node is %s", l.nodeOf(machine).Name)
			}
			l.waitForIdle()
			l.checkUnmanaged()
		})
	}
}

// checkUnmanaged checks that a host without a response from the metadata service is reported and not changed.
func (l lab) checkUnmanaged() {
	l.Helper()
	h, err := l.AddHost(l.Context(), testenv.HostOptions{NoMetadata: true})
	l.requireNoError(err)
	before := takeSnapshot(h)
	l.requireNoError(l.ListHosts(l.Context()))
	l.runWithTimeout(waitTimeout, func(ctx context.Context) error {
		return l.WaitForInstance(ctx, h, "to say why", func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && i.Status.Summary == v1alpha1.ReasonCloudNameUnknown
		})
	})
	// The agent for the query is stored in its directory and in the upload directory.
	if got := diffSnapshots(before, takeSnapshot(h)); !slices.Equal(got, []string{`folder C:\ProgramData\ssh\wicd: added`,
		`folder C:\k: added`, `folder C:\k\wicd: added`}) {
		l.Errorf("the host was changed: %s", got)
	}
}

//
func TestCloudNodeManager_HasOwnIdentity(t *testing.T) {
	t.Parallel()
	l, h := newCloudLab(t, "Azure", testenv.Options{})
	node := l.nodeOf(h)
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return strings.HasSuffix(t.Key, "/uninitialized")
	}) ||
		!strings.HasPrefix(node.Spec.ProviderID, "azure:///") {
		t.Errorf("the node is not initialized: %v, %s", node.Spec.Taints, node.Spec.ProviderID)
	}
	const dir = `C:\k\cloud-node-manager\pki`
	certificate := ""
	for path := range takeSnapshot(h).Files {
		if strings.HasPrefix(path, dir+`\`) && strings.Contains(path, "-current") {
			certificate = readHostFile(h, path)
		}
	}
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		t.Fatalf("there is no certificate in %s", dir)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	l.requireNoError(err)
	if parsed.Subject.CommonName != "system:cloud-node-manager:"+node.Name || !slices.Equal(parsed.Subject.Organization,
		[]string{"system:cloud-node-managers"}) {
		t.Errorf("the certificate is %s", parsed.Subject)
	}
	l.waitForIdle()
}
