package machines

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// D-7: the cloud controller of vSphere finds a virtual machine only by the full DNS name of
// the guest. The legacy operator has named its nodes by that name, too.
func TestDomain_VSphereNodesNamedByFullDNSName(t *testing.T) {
	const domain = "corp.example.com"
	l := start(t, "VSphere", testenv.Options{VM: testenv.VMOptions{Domain: domain}, Hosts: []testenv.HostOptions{
		{Name: "winhost-1", Domain: domain}, {Name: "winhost-2"}, {Name: "winhost-3", Domain: "CORP.Example.com"},
		{Name: "winhost-4", Domain: strings.Repeat("a", 50) + ".example.com"},
	}})
	legacy, err := l.SeedLegacyHost(t.Context(), l.Host("winhost-3"),
		testenv.LegacyOptions{Kind: testenv.LegacyContainerd, NodeName: "winhost-3." + domain})
	l.requireNoError(err)
	l.startOperator()
	l.requireNoError(l.ListHosts(t.Context()))
	l.createMachineSet("winworker", 1, testenv.MachineSetOptions{UserDataSecret: "worker-user-data-managed"})
	l.inTime(func(ctx context.Context) error { return l.WaitReady(ctx, "winhost-1", "winhost-2", "winhost-3") })

	for host, name := range map[string]string{"winhost-1": "winhost-1." + domain, "winhost-2": "winhost-2",
		"winhost-3": legacy.Name} {
		instance, err := l.Instance(t.Context(), host)
		l.requireNoError(err)
		if ref := instance.Status.NodeRef; ref == nil || ref.Name != name {
			t.Errorf("%s is Node %+v, want %s", host, ref, name)
			continue
		}
		node := &corev1.Node{}
		l.requireNoError(l.Client.Get(t.Context(), client.ObjectKey{Name: name}, node))
		if node.Spec.ProviderID == "" && node.Name != legacy.Name || node.Labels[corev1.LabelHostname] != name {
			t.Errorf("Node %s has provider ID %q, labels %v", name, node.Spec.ProviderID, node.Labels)
		}
		if node.Name == legacy.Name && node.UID != legacy.UID {
			t.Errorf("Node %s is another one", name)
		}
	}
	t.Run("a name that no Node can have is refused before the host is changed", func(t *testing.T) {
		l.inTime(func(ctx context.Context) error {
			return l.WaitForInstance(ctx, l.Host("winhost-4"), "to say that its name is too long",
				func(i *v1alpha1.WindowsInstance) bool {
					return i != nil && i.Status.Summary == v1alpha1.ReasonHostNameInvalid
				})
		})
		instance, err := l.Instance(t.Context(), "winhost-4")
		l.requireNoError(err)
		if explained := testenv.Explain(instance); !strings.Contains(explained, "63 characters") || instance.Status.NodeRef != nil {
			t.Errorf("it says %s", explained)
		}
	})
	t.Run("the node of a Machine has the Machine's name and the domain, and the Machine refers to it", func(t *testing.T) {
		name := l.waitUntilReady("winworker", 1)[0]
		if node := l.nodeOf(name); node.Name != name+"."+domain || node.Spec.ProviderID == "" {
			t.Errorf("Node %s has provider ID %q", node.Name, node.Spec.ProviderID)
		}
		l.waitForInstance(name, "to have the host's name and domain", func(i *v1alpha1.WindowsInstance) bool {
			return i != nil && i.Status.Host != nil && i.Status.Host.Domain == domain && strings.EqualFold(i.Status.Host.Name, name)
		})
	})
}
