package security

import (
	"context"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

//
func TestStoryAHostThatClaimsTheNameOfAnotherGetsNothingSigned(t *testing.T) {
	l := newInstalledLab(t, testenv.Options{LinuxNodes: 1, Hosts: []testenv.HostOptions{
		{Name: "honest"}, {Name: "master-0"}, {Name: "linux-worker"}, {Name: "winworker-x2k4f"},
		{Name: "winworker-b8d7n"}, {Name: "impostor"},
	}})
	l.withLinuxNodes(1)
	l.createObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "linux-worker",
		Labels: map[string]string{corev1.LabelOSStable: "linux"}}})
	l.createMachine("winworker-x2k4f") // being created, without addresses yet
	l.createMachine("named-by-its-cloud", corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "winworker-b8d7n"})
	before := []*corev1.Node{l.getNode("master-0"), l.getNode("linux-worker")}
	l.startOperator()
	l.list("honest")
	l.waitUntilReady("honest")
	l.TamperFacts(l.Host("impostor"), func(facts *plan.Facts) { facts.System.HostName = "Honest" })
	l.list()

	for host, claimed := range map[string]string{
		"master-0": "master-0", "linux-worker": "linux-worker", "winworker-x2k4f": "winworker-x2k4f",
		"winworker-b8d7n": "winworker-b8d7n", "impostor": "honest",
	} {
		condition := l.waitForCondition(host, v1alpha1.ReasonNameConflict)
		if condition.Type != v1alpha1.ConditionJoined || !strings.Contains(condition.Message, claimed) {
			t.Errorf("of host %s it says %s: %s", host, condition.Type, condition.Message)
		}
		if l.getInstance(host).Status.NodeRef != nil {
			t.Errorf("the instance of %s holds on to the name %s", host, l.getInstance(host).Status.NodeRef.Name)
		}
	}
	l.checkOnlySignedFor("honest")
	for _, linux := range before {
		now := l.getNode(linux.Name)
		if now.Labels[v1alpha1.LabelBYOH] != "" || now.Labels[v1alpha1.LabelWorker] != linux.Labels[v1alpha1.LabelWorker] {
			t.Errorf("Node %s got the labels %v", linux.Name, now.Labels)
		}
		for name := range now.Annotations {
			if strings.HasPrefix(name, "windowsmachineconfig.openshift.io/") {
				t.Errorf("Node %s got the annotation %s", linux.Name, name)
			}
		}
	}
	l.waitUntilReady("honest")
}

// The name was unused when it was granted.
func TestNames_NotSignedIfLinuxNodeHasName(t *testing.T) {
	l := newInstalledLab(t, testenv.Options{Hosts: []testenv.HostOptions{{Name: "linux-worker"}}})
	// The host first requests a foreign identity, and so gets only as far as the name.
	honest := l.TamperFacts(l.Host("linux-worker"), replaceRequest(subject{user: "nobody"}.newRequestPEM(t)))
	l.startOperator()
	l.list()
	l.waitForCondition("linux-worker", v1alpha1.ReasonCertificateRequestRefused)
	if ref := l.getInstance("linux-worker").Status.NodeRef; ref == nil || !ref.Confirmed {
		t.Fatalf("the name is not granted: %+v", ref)
	}
	l.createObject(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "linux-worker",
		Labels: map[string]string{corev1.LabelOSStable: "linux"}}})
	uid := l.getNode("linux-worker").UID
	honest()

	l.waitForCondition("linux-worker", v1alpha1.ReasonNameConflict)
	l.checkOnlySignedFor()
	node := l.getNode("linux-worker")
	if node.UID != uid || node.Annotations[v1alpha1.AnnotationInstance] != "" || node.Labels[v1alpha1.LabelBYOH] != "" {
		t.Errorf("the Linux node was touched: %v, %v", node.Labels, node.Annotations)
	}
}

//
func TestNames_RenamedHostKeepsNode(t *testing.T) {
	l := newInstalledLab(t, testenv.Options{LinuxNodes: 1, Hosts: testenv.Hosts(1)})
	l.withLinuxNodes(1)
	l.startOperator()
	l.list()
	l.waitUntilReady()
	h := l.Host("instance-1")
	l.TamperFacts(h, func(facts *plan.Facts) { facts.System.HostName = "MASTER-0" })
	for _, service := range []string{nodespec.ServiceAgent, nodespec.ServiceKubelet} { // the agent's service would restart the kubelet's
		l.requireNoError(h.Machine().Host().Services.Stop(t.Context(), service))
	}
	l.markNotReporting("instance-1")

	l.waitForCondition("instance-1", v1alpha1.ReasonNameConflict)
	if ref := l.getInstance("instance-1").Status.NodeRef; ref == nil || ref.Name != "instance-1" || !ref.Confirmed {
		t.Errorf("the operator has forgotten whose the node is: %+v", ref)
	}
	l.checkOnlySignedFor("instance-1")
	l.runSubtest("which goes with it", func(l lab) {
		l.requireNoError(l.SetInstances(l.Context(), nil))
		l.awaitCondition("the host to be gone", &corev1.Node{}, func(ctx context.Context, reader reader) (bool, error) {
			err := reader.Get(ctx, client.ObjectKey{Name: "instance-1"}, &corev1.Node{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		l.getNode("master-0")
	})
}

// Each host returns a request for another identity over its own, pinned connection.
func TestNames_RequestForAnotherIdentityRejected(t *testing.T) {
	cases := map[string]subject{
		"for-a-linux-node":   ofNode("master-0"),
		"for-an-admin":       {user: "system:admin", groups: []string{"system:masters"}},
		"for-a-group-more":   {user: "system:node:for-a-group-more", groups: []string{"system:nodes", "system:masters"}},
		"for-no-group":       {user: "system:node:for-no-group"},
		"for-a-server":       ofNode("for-a-server").withServingNames([]string{"api-int.lab.example.com"}),
		"for-its-upper-case": ofNode("FOR-ITS-UPPER-CASE"),
	}
	var hosts []testenv.HostOptions
	for name := range cases {
		hosts = append(hosts, testenv.HostOptions{Name: name})
	}
	l := newInstalledLab(t, testenv.Options{Hosts: append(hosts, testenv.HostOptions{Name: "honest"})})
	honest := map[string]func(){}
	for name, s := range cases {
		honest[name] = l.TamperFacts(l.Host(name), replaceRequest(s.newRequestPEM(t)))
	}
	l.startOperator()
	l.list()
	l.waitUntilReady("honest")
	for name, s := range cases {
		condition := l.waitForCondition(name, v1alpha1.ReasonCertificateRequestRefused)
		if condition.Type != v1alpha1.ConditionJoined || condition.Message == "" {
			t.Errorf("of the request for %s it says %s: %s", s.user, condition.Type, condition.Message)
		}
	}
	l.checkOnlySignedFor("honest")
	l.runSubtest("and joins when it asks for its own", func(l lab) {
		honest["for-a-linux-node"]()
		l.waitUntilReady("for-a-linux-node")
	})
}

// replaceRequest returns the lie of a host that replaces the kubelet's certificate request from the agent.
func replaceRequest(request []byte) func(*plan.Facts) {
	return func(facts *plan.Facts) {
		if block, _ := pem.Decode([]byte(facts.Identity.Request)); block != nil {
			facts.Identity.Request = string(request)
		}
	}
}

// createObject creates an object that is deleted after the test.
func (l lab) createObject(object client.Object) {
	l.Helper()
	l.requireNoError(l.Client.Create(l.Context(), object))
	l.Cleanup(func() {
		if err := l.Client.Delete(l.cleanupContext(), object); client.IgnoreNotFound(err) != nil {
			l.Error(err)
		}
	})
}

// createMachine creates a Machine with these addresses.
func (l lab) createMachine(name string, addresses ...corev1.NodeAddress) {
	l.Helper()
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace, Name: name}}
	l.createObject(machine)
	machine.Status.Addresses = addresses
	l.requireNoError(l.Client.Status().Update(l.Context(), machine))
}

// markNotReporting reports that the kubelet of a node has been silent for an hour, longer than the operator waits.
// It sets the Ready condition to Unknown, as the node lifecycle controller does.
func (l lab) markNotReporting(name string) {
	l.Helper()
	node := l.getNode(name)
	before := node.DeepCopy()
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			condition.Status, condition.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
			condition.LastTransitionTime.Time = condition.LastTransitionTime.Add(-time.Hour)
		}
	}
	l.requireNoError(l.Client.Status().Patch(l.Context(), node, client.MergeFrom(before)))
}
