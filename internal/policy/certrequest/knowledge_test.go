package certrequest

import (
	"crypto/x509"
	"net"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
)

// newBoundInstance returns an instance bound to Node win-a.
func newBoundInstance(change func(*v1alpha1.WindowsInstance)) v1alpha1.WindowsInstance {
	instance := v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "listed", CreationTimestamp: metav1.NewTime(attackTime)},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.0.1", DesiredState: v1alpha1.DesiredStateNode,
			Source: v1alpha1.Source{ConfigMapKey: "10.0.0.1"}},
		Status: v1alpha1.WindowsInstanceStatus{
			NodeRef: &v1alpha1.NodeReference{Name: "win-a", UID: "node-uid", Confirmed: true},
			HostKey: &v1alpha1.HostKey{Key: "key"}, Host: &v1alpha1.HostStatus{Name: "win-a", MachineID: "id",
				Addresses: []string{"10.0.0.1", "10.0.1.1"}, NodeIP: "10.0.0.1"},
		},
	}
	if change != nil {
		change(&instance)
	}
	return instance
}

func windowsNode(name string, created time.Time) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "node-uid", Labels: map[string]string{corev1.LabelOSStable: "windows"},
		CreationTimestamp: metav1.NewTime(created),
	}}
}

//
func TestRequester_OnlyInstanceWithConfirmedNode(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*v1alpha1.WindowsInstance)
		accepted bool
	}{
		"a node": {nil, true},
		"a node whose Machine is being deleted": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged
		}, true},
		"a node that is paused": {func(i *v1alpha1.WindowsInstance) { i.Spec.Paused = true }, true},
		"a host that is to be removed": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.DesiredState = v1alpha1.DesiredStateRemoved
		}, false},
		"a host that only claims the name": {func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef.Confirmed = false
		}, false},
		"a host that has no name yet": {func(i *v1alpha1.WindowsInstance) { i.Status.NodeRef = nil }, false},
		"a host whose name is empty":  {func(i *v1alpha1.WindowsInstance) { i.Status.NodeRef.Name = "" }, false},
		"the node of another name": {func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef.Name = "win-b"
		}, false},
		"the node of a name that differs in case": {func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef.Name = "WIN-A"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, nil)
			if got := Requester(request, []v1alpha1.WindowsInstance{newBoundInstance(c.change)}); (got != nil) != c.accepted {
				t.Errorf("the request belongs to %v", got)
			}
		})
	}
}

//
func TestJudge_RequestOlderThanNodeRefused(t *testing.T) {
	hour := time.Hour
	for name, c := range map[string]struct {
		node         time.Duration // creation time after the instance
		requestDelay time.Duration // request time after the instance
		check        string
	}{
		"a request after the Node was made is its host's": {hour, 2 * hour, ""},
		"a request just before the Node, when the kubelet starts, is": {hour,
			hour - time.Minute, ""},
		"a request long before the Node is another's": {hour,
			hour - 10*time.Minute, "RequestOutdated"},
		"a request before the instance is another's, also just before the Node": {time.Minute,
			-time.Second, "RequestOutdated"},
		"a request before an instance that was made again is the host's, whose Node is older":    {-hour, -time.Minute, ""},
		"a request from before that Node is not":                                                 {-hour, -2 * hour, "RequestOutdated"},
		"a request in the very second in which the instance was made, in which the Node was too": {time.Nanosecond, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			instance, node := newBoundInstance(nil), windowsNode("win-a", attackTime.Add(c.node))
			known := FactsOf(&instance, ClusterIdentities{Instances: []v1alpha1.WindowsInstance{instance},
				Nodes: []corev1.Node{node}})
			request := signingRequest(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth,
				newRequest(t, nil, nil))
			request.CreationTimestamp = metav1.NewTime(attackTime.Add(c.requestDelay))
			want := Approve
			if c.check != "" {
				want = Refuse
			}
			expectOutcome(t, Judge(request, known), want, c.check)
		})
	}
}

// if the Node of a host does not exist, another machine may register a Node of that name. The operator
// ignores the requests of that machine's kubelet.
func TestJudge_ForeignNodeNotApproved(t *testing.T) {
	for name, c := range map[string]struct {
		instance func(*v1alpha1.WindowsInstance)
		node     func(*corev1.Node)
		accepted bool
	}{
		"the Node that it was bound to":                {nil, nil, true},
		"that Node, whose kubelet says another system": {nil, func(n *corev1.Node) { n.Labels = nil }, true},
		"a Windows Node, before it was bound": {func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef.UID = ""
		}, nil, true},
		"a Linux Node that has the name, before that": {func(i *v1alpha1.WindowsInstance) {
			i.Status.NodeRef.UID = ""
		}, func(n *corev1.Node) {
			n.Labels[corev1.LabelOSStable] = "linux"
		}, false},
		"another Node of that name, after it was bound": {nil, func(n *corev1.Node) { n.UID = "another" }, false},
		"a Node of another name: its own is not there":  {nil, func(n *corev1.Node) { n.Name = "win-b" }, false},
		"a Linux Node of that name, after it was bound": {nil, func(n *corev1.Node) {
			n.UID, n.Labels[corev1.LabelOSStable] = "another", "linux"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			instance, node := newBoundInstance(c.instance), windowsNode("win-a", attackTime)
			if c.node != nil {
				c.node(&node)
			}
			known := FactsOf(&instance, ClusterIdentities{Instances: []v1alpha1.WindowsInstance{instance},
				Nodes: []corev1.Node{node}})
			request := signingRequest(certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth,
				newRequest(t, nil, nil))
			request.CreationTimestamp = metav1.NewTime(attackTime)
			want, check := Approve, ""
			if !c.accepted {
				want, check = Later, "NodeNotRegistered"
			}
			expectOutcome(t, Judge(request, known), want, check)
		})
	}
}

// kubelets request host names in their original case, which on Windows is mostly upper case.
func TestServingRequest_HostNameInOwnCaseApproved(t *testing.T) {
	for name, c := range map[string]struct {
		host, name string
		check      string
	}{
		"the node's name":                        {"WIN-A", "win-a", ""},
		"the host's own form of it":              {"Win-A", "Win-A", ""},
		"a form that nobody has written":         {"Win-A", "WIN-A", "NamesUnknown"},
		"a host name that is not the node's":     {"master-0", "master-0", "NamesUnknown"},
		"one that begins like it":                {"WIN-A.example.com", "WIN-A.example.com", "NamesUnknown"},
		"capitals, while the host says no names": {"", "WIN-A", "NamesUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			instance := newBoundInstance(func(i *v1alpha1.WindowsInstance) { i.Status.Host.Name = c.host })
			expectServing(t, instance, ClusterIdentities{}, c.name, c.check)
		})
	}
}

// a listed host may be the virtual machine of a Machine that the operator does not manage.
func TestServingRequest_ListedHostMayBeUnmanagedMachine(t *testing.T) {
	machine := func(change func(*machinev1beta1.Machine)) machinev1beta1.Machine {
		m := machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "m", UID: "uid",
			Labels: map[string]string{}}}
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
			{Type: corev1.NodeInternalDNS, Address: "Win-A"}}
		m.Status.NodeRef = &corev1.ObjectReference{Name: "win-a"}
		if change != nil {
			change(&m)
		}
		return m
	}
	windows := func(m *machinev1beta1.Machine) { m.Labels[v1alpha1.LabelMachineOSID] = v1alpha1.MachineOSIDWindows }
	for name, c := range map[string]struct {
		instance func(*v1alpha1.WindowsInstance)
		machine  func(*machinev1beta1.Machine)
		isOwn    bool
	}{
		"one without the label of Windows": {nil, nil, true},
		"one that is to be ignored": {nil, func(m *machinev1beta1.Machine) {
			windows(m)
			m.Labels[v1alpha1.LabelIgnore] = "true"
		}, true},
		"listed by the name that the cloud gives it": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.Address = "win-a"
		}, nil, true},
		"not one that the operator makes a node of": {nil, windows, false},
		"not one at an address that the host alone tells": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.Address = "10.0.1.1"
		}, nil, false},
		"not another Machine, for the host of a Machine": {func(i *v1alpha1.WindowsInstance) {
			i.Spec.Source.Machine = &v1alpha1.MachineReference{Namespace: v1alpha1.MachineNamespace, Name: "own", UID: "own-uid"}
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			instance, machines := newBoundInstance(c.instance), []machinev1beta1.Machine{machine(c.machine)}
			check := ""
			if !c.isOwn {
				check = "ForeignIdentity"
			}
			expectServing(t, instance, ClusterIdentities{Machines: machines}, "win-a", check)
			claim := nodename.Claim{Instance: instance, NodeName: "win-a", Machines: machines}
			if decision := nodename.Grant(claim); decision.Allowed != c.isOwn {
				t.Errorf("it has the name: %t; %s", decision.Allowed, decision.Message)
			}
			claim.Node = nodeNamed("win-a", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "linux" })
			if decision := nodename.Grant(claim); decision.Allowed {
				t.Error("it has the name of another's Node")
			}
		})
	}
}

// expectServing requests a certificate for the instance's address and a name, and reports a decision by another
// check. An empty check means approval.
func expectServing(t *testing.T, instance v1alpha1.WindowsInstance, present ClusterIdentities, name, check string) {
	t.Helper()
	present.Instances, present.Nodes = []v1alpha1.WindowsInstance{instance},
		[]corev1.Node{windowsNode("win-a", attackTime)}
	present.Cluster = knownNodes.Cluster
	request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
		newRequest(t, nil, func(r *x509.CertificateRequest) {
			withNames(r)
			r.DNSNames = []string{name}
		}))
	request.CreationTimestamp = metav1.NewTime(attackTime)
	want := Approve
	if check != "" {
		want = Refuse
	}
	expectOutcome(t, Judge(request, FactsOf(&instance, present)), want, check)
}

// an earlier release of the operator recorded no address of the Node in the status. Nodes of that release
// renew their serving certificates while they wait for the upgrade, even if the operator reaches the host at another
// address.
func TestServingRequest_NodeOfEarlierReleaseRenews(t *testing.T) {
	const requested = "10.0.1.1"
	for name, c := range map[string]struct {
		recorded, internal string
		reported           []string
		check              string
	}{
		"for the internal address of its Node":          {"", requested, []string{requested, "10.0.0.1"}, ""},
		"not for one that its host no longer has":       {"", requested, []string{"10.0.0.1"}, "AddressesUnknown"},
		"not for another one that its host reports":     {"", "10.0.0.1", []string{"10.0.0.1", requested}, "AddressesUnknown"},
		"not against the record of the present release": {"10.0.0.1", requested, []string{requested, "10.0.0.1"}, "AddressesUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			instance := newBoundInstance(func(i *v1alpha1.WindowsInstance) {
				i.Spec.Address, i.Spec.Source.ConfigMapKey = "win-a.example.com", "win-a.example.com"
				i.Status.Host.Addresses, i.Status.Host.NodeIP, i.Status.Host.LastReachedAddress = c.reported, c.recorded, "203.0.113.7"
			})
			node := windowsNode("win-a", attackTime)
			node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.internal}}
			present := ClusterIdentities{Instances: []v1alpha1.WindowsInstance{instance}, Nodes: []corev1.Node{node}, Cluster: knownNodes.Cluster}
			request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
				newRequest(t, nil, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP(requested).To4()} }))
			request.CreationTimestamp = metav1.NewTime(attackTime)
			want := Approve
			if c.check != "" {
				want = Refuse
			}
			expectOutcome(t, Judge(request, FactsOf(&instance, present)), want, c.check)
		})
	}
}

// a host may report any address. The operator's own connection, the node's source, or the operator's choice of
// the Node's address must support it.
func TestServingRequest_HostReportedAddressRefused(t *testing.T) {
	const requested = "10.0.1.1"
	host := func(change func(*v1alpha1.HostStatus)) func(*v1alpha1.WindowsInstance) {
		return func(i *v1alpha1.WindowsInstance) {
			i.Spec.Address, i.Spec.Source.ConfigMapKey = "win-a.example.com", "win-a.example.com"
			i.Status.Host.Addresses, i.Status.Host.NodeIP, i.Status.Host.LastReachedAddress = []string{requested, "10.0.0.1"}, "10.0.0.1", "10.0.0.1"
			change(i.Status.Host)
		}
	}
	another := func(change func(*v1alpha1.HostStatus)) []v1alpha1.WindowsInstance {
		other := newBoundInstance(host(change))
		other.Name, other.Status.NodeRef.Name, other.Status.HostKey.Key = "other", "win-b", "another"
		return []v1alpha1.WindowsInstance{other}
	}
	reached := func(h *v1alpha1.HostStatus) { h.LastReachedAddress = requested }
	chosen := func(h *v1alpha1.HostStatus) { h.NodeIP = requested }
	reported := func(*v1alpha1.HostStatus) {}
	for name, c := range map[string]struct {
		instance       func(*v1alpha1.WindowsInstance)
		otherInstances []v1alpha1.WindowsInstance
		check          string
	}{
		"one that nothing but the host reports": {host(reported), nil, "AddressesUnknown"},
		"the one at which the operator reached the host, also behind address translation": {host(func(h *v1alpha1.HostStatus) {
			h.Addresses, h.LastReachedAddress = []string{"10.0.0.1"}, requested
		}), nil, ""},
		"the one that the operator chose for the Node, where it reaches the host at another": {host(chosen), nil, ""},
		"not one that the operator chose before the host lost it": {host(func(h *v1alpha1.HostStatus) {
			h.Addresses, h.NodeIP = []string{"10.0.0.1"}, requested
		}), nil, "AddressesUnknown"},
		"not while no host key is pinned": {func(i *v1alpha1.WindowsInstance) {
			host(reached)(i)
			i.Status.HostKey = nil
		}, nil, "AddressesUnknown"},
		"the one that it was reached at, whatever another host reports": {host(reached), another(reported), ""},
		"not the chosen one, which another host reports too":            {host(chosen), another(reported), "ForeignIdentity"},
		"not the chosen one, at which another host was reached":         {host(chosen), another(reached), "ForeignIdentity"},
		"not one at which two hosts were reached":                       {host(reached), another(reached), "ForeignIdentity"},
	} {
		t.Run(name, func(t *testing.T) {
			instance := newBoundInstance(c.instance)
			present := ClusterIdentities{Instances: append(c.otherInstances, instance), Nodes: []corev1.Node{windowsNode("win-a", attackTime)},
				Cluster: knownNodes.Cluster}
			request := signingRequest(certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
				newRequest(t, nil, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP(requested).To4()} }))
			request.CreationTimestamp = metav1.NewTime(attackTime)
			want := Approve
			if c.check != "" {
				want = Refuse
			}
			expectOutcome(t, Judge(request, FactsOf(&instance, present)), want, c.check)
		})
	}
}
