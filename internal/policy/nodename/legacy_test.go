package nodename

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

//
func TestLegacyNode_FoundByHostAddress(t *testing.T) {
	const address = "10.0.128.7"
	node := func(name string, change ...func(*corev1.Node)) corev1.Node {
		return *legacyNodeOf(name, address, func(n *corev1.Node) {
			for _, each := range change {
				each(n)
			}
		})
	}
	computer := func(name string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.NodeInfo.MachineID = name }
	}
	elsewhere := func(n *corev1.Node) { n.Status.Addresses[1].Address = "10.0.128.99" }
	joining := func(n *corev1.Node) {
		elsewhere(n)
		n.Annotations = map[string]string{}
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNotReady}}
	}
	bound := func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationInstance] = "another" }
	const domain, project = ".corp.example.com", ".c.example-project.internal"
	const ec2 = "ip-10-0-128-7.ec2.internal"
	for name, c := range map[string]struct {
		platform, host, expected string
		found                    []corev1.Node
		named                    *corev1.Node
		want, check              string
	}{
		"none has the address": {platform: "VSphere", host: "win1", expected: "win1"},
		"vSphere, full name of a host in a domain": {platform: "VSphere", host: "win1", expected: "win1" + domain,
			found: []corev1.Node{node("win1" + domain)}, want: "win1" + domain},
		"vSphere, full name of a host that has left its domain": {platform: "VSphere", host: "win1", expected: "win1",
			found: []corev1.Node{node("win1" + domain)}, want: "win1" + domain},
		"vSphere, short name of a host in a domain": {platform: "VSphere", host: "WIN1", expected: "win1" + domain,
			found: []corev1.Node{node("win1")}, want: "win1"},
		"vSphere, host name in upper case": {platform: "VSphere", host: "WIN1", expected: "win1",
			found: []corev1.Node{node("win1" + domain)}, want: "win1" + domain},
		"vSphere, a name that NetBIOS cuts": {platform: "VSphere", host: "WinWorker-A-0001", expected: "winworker-a-0001",
			found: []corev1.Node{node("winworker-a-000" + domain)}, want: "winworker-a-000" + domain},
		"vSphere, a domain with which a new node could have no name": {platform: "VSphere", host: "win1",
			found: []corev1.Node{node("win1")}, want: "win1"},
		"GCP, internal DNS name of the project": {platform: "GCP", host: "WIN1", expected: "win1",
			found: []corev1.Node{node("win1" + project)}, want: "win1" + project},
		"GCP, internal DNS name of the zone": {platform: "GCP", host: "WIN1", expected: "win1",
			found: []corev1.Node{node("win1.europe-west1-b" + project)}, want: "win1.europe-west1-b" + project},
		"GCP, short name, as names of more than 63 characters were cut": {platform: "GCP", host: "WIN1", expected: "win1",
			found: []corev1.Node{node("win1")}, want: "win1"},
		"GCP, a host name of the user's own": {platform: "GCP", host: "WIN1", expected: "win1",
			found: []corev1.Node{node("shop.example.com", computer("WIN1"))}, check: "LegacyHostMismatch"},
		"GCP, the metadata service does not answer, so the host gets no name": {platform: "GCP", host: "WIN1",
			found: []corev1.Node{node("win1" + project)}},
		"AWS, private DNS name": {platform: "AWS", host: "EC2AMAZ-1", expected: ec2, found: []corev1.Node{node(ec2)}, want: ec2},
		"AWS, private DNS name under another domain than before": {platform: "AWS", host: "EC2AMAZ-1",
			expected: "ip-10-0-128-7.corp.example", found: []corev1.Node{node(ec2)}, want: ec2},
		"AWS, the metadata service does not answer, so the host gets no name": {platform: "AWS", host: "EC2AMAZ-1",
			found: []corev1.Node{node(ec2)}},
		"AWS, the Node of another machine": {platform: "AWS", host: "EC2AMAZ-1", expected: ec2,
			found: []corev1.Node{node("ip-10-0-128-9.ec2.internal", computer("EC2AMAZ-1"))}, check: "LegacyHostMismatch"},
		"Azure":      {platform: "Azure", host: "WIN1", expected: "win1", found: []corev1.Node{node("win1")}, want: "win1"},
		"Nutanix":    {platform: "Nutanix", host: "WIN1", expected: "win1", found: []corev1.Node{node("win1")}, want: "win1"},
		"bare metal": {platform: "BareMetal", host: "WIN1", expected: "win1", found: []corev1.Node{node("win1")}, want: "win1"},
		"no platform": {platform: "None", host: "WIN1", expected: "win1", found: []corev1.Node{node("win1" + domain)},
			want: "win1" + domain},
		"no platform, the address has passed to another host": {platform: "None", host: "WIN2", expected: "win2",
			found: []corev1.Node{node("win1", computer("WIN1"))}, check: "LegacyHostMismatch"},
		"no platform, the kubelet reports the host's computer name and the Node has another": {platform: "None", host: "WIN2",
			expected: "win2", found: []corev1.Node{node("win1", computer("WIN2"))}, check: "LegacyHostMismatch"},
		"a name that only begins like the host's": {platform: "None", host: "WIN1", expected: "win1",
			found: []corev1.Node{node("win11" + domain)}, check: "LegacyHostMismatch"},
		"two Nodes with the address": {platform: "VSphere", host: "win1", expected: "win1",
			found: []corev1.Node{node("win1" + domain), node("win1")}, check: "LegacyNodeAmbiguous"},
		"a second Node of the older operator with the name, at another address": {platform: "VSphere", host: "win1",
			expected: "win1", found: []corev1.Node{node("win1" + domain)}, named: legacyNodeOf("win1", "10.0.128.99", nil),
			check: "SecondLegacyNode"},
		"a Node with the name that has just registered": {platform: "VSphere", host: "win1", expected: "win1",
			found: []corev1.Node{node("win1" + domain)}, named: legacyNodeOf("win1", "", joining), check: "SecondLegacyNode"},
		"a Node with the name that is another host's": {platform: "GCP", host: "win1", expected: "win1",
			found: []corev1.Node{node("win1" + project)}, named: legacyNodeOf("win1", "10.0.128.99", bound),
			want: "win1" + project},
		"the found Node itself": {platform: "None", host: "win1", expected: "win1", found: []corev1.Node{node("win1")},
			named: legacyNodeOf("win1", address, nil), want: "win1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, decision := LegacyNode(LegacySearch{Platform: c.platform, Address: address, HostName: c.host,
				Expected: c.expected, Found: c.found, Named: c.named})
			if got != c.want || decision.Allowed != (c.check == "") || !decision.Allowed && decision.Check != c.check {
				t.Fatalf("got %q, %+v", got, decision)
			}
			if !decision.Allowed && (decision.Reason != v1alpha1.ReasonNameConflict || !strings.Contains(decision.Message,
				c.found[0].Name) || !strings.Contains(decision.Message, address)) {
				t.Errorf("the refusal is %+v", decision)
			}
		})
	}
	t.Run("a message does not name all of many", func(t *testing.T) {
		many := make([]corev1.Node, 40)
		for i := range many {
			many[i] = node(strings.Repeat("a", 60))
		}
		if message := OneLegacyNode(many, address).Message; len(message) > 600 || !strings.Contains(message, "35 more") {
			t.Errorf("it says %q", message)
		}
	})
}

//
func TestOfFormerEntry_NamePassesToNextEntry(t *testing.T) {
	instance := func(name, node, key, computer string) v1alpha1.WindowsInstance {
		i := newClaimant(name, node, key, time.Hour)
		i.Status.NodeRef.Confirmed = true
		i.Status.Host.Name = computer
		return i
	}
	entry := instance("entry", "", "key-1", "WIN1")
	entry.Status.NodeRef = nil
	unconfirmed := instance("former", "win1.corp.example.com", "key-1", "win1")
	unconfirmed.Status.NodeRef.Confirmed = false
	astray := instance("astray", "win1.corp.example.com", "key-1", "win1")
	astray.Status.NodeRef.MachineID = "that of its Node"
	for name, c := range map[string]struct {
		other v1alpha1.WindowsInstance
		want  string
	}{
		"not of an instance that leads to another machine than that of its Node": {astray, ""},
		"of the same host":                          {instance("former", "win1.corp.example.com", "key-1", "win1"), "win1.corp.example.com"},
		"not of a claim that nobody has confirmed":  {unconfirmed, ""},
		"not of a host with another key":            {instance("former", "win1.corp.example.com", "key-2", "win1"), ""},
		"not of another machine made of one image":  {instance("former", "win2.corp.example.com", "key-1", "win2"), ""},
		"not of the instance itself, while it asks": {instance("entry", "win1.corp.example.com", "key-1", "win1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OfFormerEntry(&entry, []v1alpha1.WindowsInstance{c.other}); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

//
func TestNameClaim_MachineNameReservedInAnyDomain(t *testing.T) {
	machines := []machinev1beta1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: "winworker-1"}}}
	for name, conflict := range map[string]bool{
		"winworker-1": true, "winworker-1.corp.example.com": true, "winworker-10.corp.example.com": false, "win.winworker-1": false,
	} {
		decision := Grant(Claim{Instance: newClaimant("entry", name, "key-1", time.Hour), NodeName: name, Machines: machines})
		if decision.Allowed == conflict {
			t.Errorf("%s: %+v", name, decision)
		}
	}
}
