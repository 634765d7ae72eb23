package test

import (
	"context"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

func keyOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

//
func TestStoryTheTwoHostsOfTheGuideBecomeNodes(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(2)})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)

	for _, h := range r.Hosts() {
		name := h.Options.Name
		n := getNode(t, r, name)
		t.Run("node "+name+" carries the names that administrators know", func(t *testing.T) {
			for label, want := range map[string]string{
				"node.openshift.io/os_id": "Windows", "node-role.kubernetes.io/worker": "", "windowsmachineconfig.openshift.io/byoh": "true",
				corev1.LabelOSStable: "windows", corev1.LabelArchStable: "amd64", corev1.LabelWindowsBuild: "10.0.20348",
			} {
				if got, ok := n.Labels[label]; !ok || got != want {
					t.Errorf("label %s is %q (there: %t), want %q", label, got, ok, want)
				}
			}
			if got := n.Annotations[v1alpha1.AnnotationVersion]; got != "1.0.0-lab" {
				t.Errorf("the version annotation is %q", got)
			}
			for _, annotation := range []string{v1alpha1.AnnotationPubKeyHash, v1alpha1.AnnotationHostKey, v1alpha1.AnnotationHostKeyType} {
				if n.Annotations[annotation] == "" {
					t.Errorf("annotation %s is missing", annotation)
				}
			}
			taints := slices.DeleteFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
				return strings.HasPrefix(taint.Key, "node.kubernetes.io/") // set by the node lifecycle controller for a moment
			})
			if len(taints) != 1 || taints[0].Key != "os" || taints[0].Value != "Windows" {
				t.Errorf("taints are %+v, want os=Windows:NoSchedule alone", taints)
			}
		})
		//
		t.Run("host "+name+" was configured within the budget", func(t *testing.T) {
			journal := h.Machine().Journal()
			defer func() {
				if t.Failed() {
					t.Logf("the host's journal: %s", formatJournal(journal))
				}
			}()
			if got := journal.Count(fake.KindConnection); got > 2 {
				t.Errorf("%d connections, at most 2", got)
			}
			if got := journal.Count(fake.KindExec); got > 8 {
				t.Errorf("%d execs, at most 8: %v", got, journal.Entries(func(e fake.Entry) bool { return e.Kind == fake.KindExec }))
			}
			if got := journal.Count(fake.KindSFTP); got != 2 {
				t.Errorf("%d file sessions, want 2: one before the restart, and one after it", got)
			}
			if got := journal.Count(fake.KindReboot); got != 1 {
				t.Errorf("%d reboots, want 1 for the Containers feature", got)
			}
			for _, e := range journal.Entries(nil) {
				if strings.Contains(strings.ToLower(e.Detail), "powershell") {
					t.Errorf("PowerShell was used: %+v", e)
				}
			}
		})
	}

	t.Run("every certificate request of the nodes was approved, and for nobody but them", func(t *testing.T) {
		// A kubelet requests a serving certificate once its node exists, possibly after the node is Ready.
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		var requests certificatesv1.CertificateSigningRequestList
		undecided := func(request certificatesv1.CertificateSigningRequest) bool {
			return len(request.Status.Certificate) == 0
		}
		err := r.WaitFor(ctx, "every request to have a certificate", &certificatesv1.CertificateSigningRequest{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				if err := reader.List(ctx, &requests); err != nil {
					return false, err
				}
				return len(requests.Items) > 0 && !slices.ContainsFunc(requests.Items, undecided), nil
			})
		if err != nil {
			t.Error(err)
		}
		nodes := []string{"system:node:instance-1", "system:node:instance-2"}
		for _, request := range requests.Items {
			// The operator submits the requests of a host that is not yet a node.
			byOperator := strings.HasPrefix(request.Spec.Username, "system:serviceaccount:"+r.Namespace()+":")
			if undecided(request) || !byOperator && !slices.Contains(nodes, request.Spec.Username) {
				t.Errorf("request %s of %s has a certificate of %d bytes: %+v", request.Name, request.Spec.Username,
					len(request.Status.Certificate), request.Status.Conditions)
			}
		}
	})
}

//
func TestJoin_AddedEntryAddsOnlyItsHost(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(2)})
	run(t, r)
	list(t, r, "instance-1")
	waitUntilReady(t, r, "instance-1")
	before := r.Host("instance-1").Machine().Journal().Count(fake.KindExec)

	list(t, r)
	waitUntilReady(t, r, "instance-2")
	if after := r.Host("instance-1").Machine().Journal().Count(fake.KindExec); after != before {
		t.Errorf("the first host saw %d execs because of the second", after-before)
	}
}

//
func TestJoin_OperatorRestartLeavesNodesUnchanged(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	first := run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	journal := r.Host("instance-1").Machine().Journal()
	before := len(journal.Entries(nil))
	uid, status := getNode(t, r, "instance-1").UID, resourceVersion(t, r, "instance-1")

	// The second host shows that the restarted operator has reconciled all instances.
	if _, err := r.AddHost(t.Context(), testenv.HostOptions{Name: "instance-2"}); err != nil {
		t.Fatal(err)
	}
	run(t, r)
	list(t, r)
	waitUntilReady(t, r, "instance-2")
	if touched := slices.DeleteFunc(journal.Entries(nil)[before:], e2e.IsHostActivity); len(touched) > 0 {
		t.Errorf("the operator touched a healthy host: %+v", touched)
	}
	if got := getNode(t, r, "instance-1").UID; got != uid {
		t.Errorf("the node was made anew: %s, before %s", got, uid)
	}
	if got := resourceVersion(t, r, "instance-1"); got != status {
		t.Errorf("the status of a healthy host was written: resource version %s, before %s", got, status)
	}
}

func resourceVersion(t *testing.T, r *testenv.Environment, name string) string {
	t.Helper()
	instance, err := r.Instance(t.Context(), name)
	if err != nil || instance == nil {
		t.Fatalf("read the instance of %s: %v", name, err)
	}
	return instance.ResourceVersion
}

//
func TestJoin_OperatorUsesOnlyItsNamespace(t *testing.T) {
	r := start(t, testenv.Options{Hosts: testenv.Hosts(1)})
	if _, err := r.InstallOperator(t.Context(), "windows-elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, r)

	foreign := &corev1.ConfigMap{}
	foreign.Namespace, foreign.Name = "default", "windows-instances"
	foreign.Data = map[string]string{"10.9.0.77": "username=core"}
	if err := r.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Client.Delete(context.Background(), foreign) }) // the control plane is shared

	list(t, r)
	waitUntilReady(t, r)
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(t.Context(), &instances); err != nil {
		t.Fatal(err)
	}
	if len(instances.Items) != 1 || instances.Items[0].Namespace != "windows-elsewhere" {
		t.Errorf("instances are %+v, want just the one in the operator's namespace", instances.Items)
	}
}

//
func TestJoin_ClosedLogPortReportedButNodeReady(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	_, err := r.RunOperator(func(c *operator.Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ":10250") {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return dial(ctx, network, address)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	list(t, r)
	waitUntilReady(t, r)
	if !waitForEvent(t, r, "KubeletPortUnreachable", "10250") {
		t.Error("no event names the closed port")
	}
}

func TestDeletedNode_IsRecreated(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	before := getNode(t, r, "instance-1")
	if err := r.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitFor(ctx, "the node to come back and take pods", &corev1.Node{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, keyOf("", "instance-1"), n)
			return err == nil && n.UID != before.UID && n.Annotations[v1alpha1.AnnotationVersion] != "",
				client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r)
}

// Files that a host loses over a restart are sent again.
func TestJoin_FilesLostDuringRestartSentAgain(t *testing.T) {
	for name, lost := range map[string]string{
		"its description":   nodespec.SpecPath,
		"the agent's files": nodespec.AgentRoot,
	} {
		t.Run(name, func(t *testing.T) {
			r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(1)})
			machine := r.Host("instance-1").Machine()
			machine.OnBoot(func() { _ = machine.Drive().RemoveAll(lost) })
			run(t, r)
			list(t, r)
			waitUntilReady(t, r)
			if got := machine.Journal().Count(fake.KindReboot); got != 1 {
				t.Errorf("%d reboots, want 1", got)
			}
			if got := machine.Journal().Count(fake.KindSFTP); got != 2 {
				t.Errorf("%d file sessions, want one before the restart and one after it", got)
			}
		})
	}
}
