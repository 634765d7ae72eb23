package certrequest

import (
	"fmt"
	"slices"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// the facts include all owners of names and addresses, with or without a Node.
func TestFactsOf_IncludesAllOwners(t *testing.T) {
	own := newBoundInstance(func(i *v1alpha1.WindowsInstance) {
		i.Spec.Source = v1alpha1.Source{Machine: &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace,
			Name: "win", UID: "uid"}}
	})
	machine := func(name, uid string, addresses ...string) machinev1beta1.Machine {
		m := machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name}}
		m.UID = own.Spec.Source.Machine.UID
		if uid != "uid" {
			m.UID = "another"
		}
		for _, address := range addresses {
			m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
		return m
	}
	node := func(name string, addresses ...string) corev1.Node {
		n := windowsNode(name, attackTime)
		for _, address := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address})
		}
		return n
	}
	sibling := func(name string, change func(*v1alpha1.WindowsInstance)) v1alpha1.WindowsInstance {
		return newBoundInstance(func(i *v1alpha1.WindowsInstance) {
			i.Name, i.Spec.Address, i.Status.Host.Addresses, i.Status.HostKey = name, "10.0.2.1", []string{"10.0.2.2"},
				&v1alpha1.HostKey{Key: "another"}
			i.Status.NodeRef = nil
			change(i)
		})
	}
	known := FactsOf(&own, ClusterIdentities{
		Instances: []v1alpha1.WindowsInstance{
			sibling("before", func(*v1alpha1.WindowsInstance) {}), own,
			sibling("second-entry", func(i *v1alpha1.WindowsInstance) {
				i.Spec.Address, i.Status.HostKey = "win.example.com", &v1alpha1.HostKey{Key: "key"}
			}),
			sibling("clone", func(i *v1alpha1.WindowsInstance) {
				i.Spec.Address, i.Status.HostKey = "10.0.3.1", &v1alpha1.HostKey{Key: "key"}
				i.Status.NodeRef = &v1alpha1.NodeReference{Name: "win-c", Confirmed: true}
			}),
		},
		Nodes: []corev1.Node{node("win-a", "10.0.9.9"), node("win-c", "10.0.3.3"), node("master-0", "10.0.4.1")},
		Machines: []machinev1beta1.Machine{machine("win", "uid", "10.0.0.1", "10.0.5.1"), machine("win", "other", "10.0.6.1"),
			machine("master-9", "other", "10.0.7.1")},
	})
	var got []string
	for _, n := range known.Nodes {
		got = append(got, fmt.Sprintf("%s foreign=%t given=%v%v told=%v%v claimed=%v", n.Name, n.Foreign, n.Assigned.Names,
			n.Assigned.Addresses, n.Reported.Names, n.Reported.Addresses, n.Claimed.Addresses))
	}
	want := []string{
		"of WindowsInstance before foreign=true given=[][10.0.2.1] told=[][] claimed=[10.0.2.2]",
		"win-a foreign=false given=[win-a][10.0.0.1 10.0.0.1 10.0.5.1] told=[][10.0.0.1] claimed=[10.0.1.1]",
		"win-c foreign=false given=[win-c][10.0.3.1] told=[][] claimed=[10.0.2.2]",
		"win-c foreign=true given=[win-c][] told=[][10.0.3.3] claimed=[]",
		"master-0 foreign=true given=[master-0][10.0.4.1] told=[][] claimed=[]",
		"of Machine win foreign=true given=[][10.0.6.1] told=[][] claimed=[]",
		"of Machine master-9 foreign=true given=[][10.0.7.1] told=[][] claimed=[]",
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			t.Errorf("%d:\n got %v\nwant %v", i, textAt(got, i), textAt(want, i))
		}
	}
}

// legacy operators named nodes on GCP by the internal DNS name of the instance.
func TestAddCloudAddresses_FullNodeNameHasMachineNames(t *testing.T) {
	node := windowsNode("win-a.c.project.internal", attackTime)
	node.Spec.ProviderID = "gce://project/us-east1-b/win-a"
	for _, name := range []string{"win-a.us-east1-b.c.project.internal", "win-b.us-east1-b.c.project.internal"} {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: name})
	}
	known := Node{Name: node.Name}
	known.AddCloudAddresses(&node, nodespec.Cluster{Platform: "GCP"})
	if want := []string{"win-a.us-east1-b.c.project.internal"}; !slices.Equal(known.Reported.Names, want) {
		t.Errorf("it has %v", known.Reported.Names)
	}
}

func textAt(texts []string, i int) string {
	if i < len(texts) {
		return texts[i]
	}
	return "nothing"
}
