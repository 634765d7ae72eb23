package csr

import (
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	publicIP   = "18.219.7.9"
	publicName = "ec2-18-219-7-9.us-east-2.compute.amazonaws.com"
)

// newListedInstance returns the instance of a host in windows-instances with the node win-a.
func newListedInstance() *v1alpha1.WindowsInstance {
	listed := newMachineInstance()
	listed.Spec.Source = v1alpha1.Source{ConfigMapKey: privateIP}
	return listed
}

// newCloudNode returns the Node of that instance as written by the cloud controller.
func newCloudNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: winNode, Labels: map[string]string{corev1.LabelOSStable: "windows"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///us-east-2a/i-0abc"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: privateIP}, {Type: corev1.NodeExternalIP, Address: publicIP},
			{Type: corev1.NodeInternalDNS, Address: cloudName}, {Type: corev1.NodeExternalDNS, Address: publicName},
		}},
	}
}

//
func TestServing_ListedCloudHostGetsOwnNames(t *testing.T) {
	names, addresses := []string{winNode, cloudName, publicName}, []string{privateIP, publicIP}
	for name, objects := range map[string][]client.Object{
		"with what the cloud has given the Node": {newListedInstance(), newCloudNode()},
		"whose host has an entry from before it moved": {newListedInstance(), newCloudNode(), func() client.Object {
			moved := newListedInstance()
			moved.Name, moved.Spec.DesiredState = "moved", v1alpha1.DesiredStateRemoved
			moved.Status.Host.MachineID = ""
			moved.Status.HostKey = &v1alpha1.HostKey{Key: "key"}
			return moved
		}()},
	} {
		if strings.HasPrefix(name, "whose") {
			objects[0].(*v1alpha1.WindowsInstance).Status.HostKey = &v1alpha1.HostKey{Key: "key"}
		}
		t.Run(name+" are approved", func(t *testing.T) {
			if approved, events := decideRequest(t, newServingRequest(t, winNode, names, addresses...), objects...); !approved {
				t.Errorf("it is refused: %q", events)
			}
		})
	}
	other := func(change func(*v1alpha1.WindowsInstance)) *v1alpha1.WindowsInstance {
		other := newListedInstance()
		other.Name, other.Spec.Address = "other", "10.0.128.8"
		other.Status = v1alpha1.WindowsInstanceStatus{Host: &v1alpha1.HostStatus{Name: "other",
			Addresses: []string{"10.0.128.8"}}}
		change(other)
		return other
	}
	confirmed := other(func(i *v1alpha1.WindowsInstance) {
		i.Status.NodeRef = &v1alpha1.NodeReference{Name: "other", Confirmed: true}
	})
	for name, c := range map[string]struct {
		message string
		objects []client.Object
	}{
		"when the cloud does not know the Node yet": {"not a known name of the node",
			[]client.Object{newListedInstance(), namedNode(winNode, newCloudNode().Status.Addresses...)}},
		"with the address of a node of the cluster": {"master-0 also has", []client.Object{
			newListedInstance(), newCloudNode(), namedNode("master-0", corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: publicIP})}},
		"with the address of another instance's Node": {"other also has", []client.Object{
			newListedInstance(), newCloudNode(), confirmed, namedNode("other", corev1.NodeAddress{Type: corev1.NodeExternalIP,
				Address: publicIP})}},
		"with the address of a Machine that has no Node yet": {"of Machine master-3 also has", []client.Object{
			newListedInstance(), newCloudNode(), &machinev1beta1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "master-3", UID: "another-uid"},
				Status: machinev1beta1.MachineStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeExternalIP,
					Address: publicIP}}},
			}}},
		"with the name of such a Machine": {"of Machine master-3 also has", []client.Object{
			newListedInstance(), newCloudNode(), &machinev1beta1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "master-3", UID: "another-uid"},
				Status:     machinev1beta1.MachineStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: cloudName}}},
			}}},
		"with the address by which another host is listed": {"of WindowsInstance other also has", []client.Object{
			newListedInstance(), newCloudNode(), other(func(i *v1alpha1.WindowsInstance) { i.Spec.Address = publicIP })}},
		"with a name by which another host is listed": {"of WindowsInstance other also has", []client.Object{
			newListedInstance(), newCloudNode(), other(func(i *v1alpha1.WindowsInstance) { i.Spec.Address = publicName })}},
	} {
		t.Run(name+" are left pending", func(t *testing.T) {
			approved, events := decideRequest(t, newServingRequest(t, winNode, names, addresses...), c.objects...)
			if approved || len(events) != 1 || !strings.Contains(events[0], c.message) {
				t.Errorf("approved is %t, events are %q", approved, events)
			}
		})
	}
}

//
func TestServing_APIServerNamesNotApproved(t *testing.T) {
	names, addresses := []string{winNode, cloudName, publicName}, []string{privateIP, publicIP}
	for _, address := range []corev1.NodeAddress{
		{Type: corev1.NodeInternalDNS, Address: "api-int.lab.example.com"}, {Type: corev1.NodeExternalDNS,
			Address: "api.lab.example.com"},
		{Type: corev1.NodeInternalDNS, Address: "kubernetes.default.svc"}, {Type: corev1.NodeExternalDNS,
			Address: "localhost"},
	} {
		spoofed := newCloudNode()
		spoofed.Status.Addresses = append(spoofed.Status.Addresses, address)
		if approved, _ := decideRequest(t, newServingRequest(t, winNode, append([]string{address.Address}, names...), addresses...),
			newListedInstance(), spoofed); approved {
			t.Errorf("it gets %s", address.Address)
		}
	}
	for _, address := range []string{"172.30.0.1", "127.0.0.1", "10.0.0.5"} {
		spoofed := newCloudNode()
		spoofed.Status.Addresses = append(spoofed.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address})
		if approved, _ := decideRequest(t, newServingRequest(t, winNode, names, append([]string{address}, addresses...)...),
			newListedInstance(), spoofed); approved {
			t.Errorf("it gets %s", address)
		}
	}
}
