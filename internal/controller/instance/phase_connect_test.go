package instance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// keyFingerprint returns the fingerprint of the host's key, as printed by ssh-keygen -l.
func (h *sshHost) keyFingerprint() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return ssh.FingerprintSHA256(h.hostKey.PublicKey())
}

func TestHostKey_NoLoginUntilChangedKeyAccepted(t *testing.T) {
	x := newTrial(t)
	x.asNode(listedInstance(), "another") // so that there is something to do on the host
	pinned := x.host.keyFingerprint()
	x.host.exchangeHostKey()
	var delays []time.Duration
	for range 8 {
		instance, after := x.reconcile()
		delays = append(delays, after)
		changed := expectCondition(t, instance, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, string(remote.ReasonHostKeyChanged))
		for _, fingerprint := range []string{pinned, x.host.keyFingerprint()} {
			if !strings.Contains(changed.Message, fingerprint) {
				t.Errorf("%s is not in %q", fingerprint, changed.Message)
			}
		}
		accept := v1alpha1.AnnotationAcceptHostKey + "=" + x.host.keyFingerprint()
		if !strings.Contains(instance.Status.NextAction, accept) ||
			!strings.Contains(instance.Status.NextAction, "retries at") {
			t.Errorf("next is %q: neither how the key is accepted nor when the operator looks again", instance.Status.NextAction)
		}
		if instance.Status.HostKey.Fingerprint != pinned {
			t.Error("the other key is pinned")
		}
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
		time.Minute, time.Minute, time.Minute}
	if !slices.Equal(delays, want) || x.countDials() != len(delays) {
		t.Errorf("it is looked at after %v, with %d connections", delays, x.countDials())
	}
	if x.host.loginAttempts() != 0 {
		t.Errorf("the operator has tried %d times to log in", x.host.loginAttempts())
	}
	if events := x.popEvents(); len(events) != 1 || !strings.Contains(events[0], "HostKeyChanged") {
		t.Errorf("the events are %q", events)
	}

	x.annotateInstance(v1alpha1.AnnotationAcceptHostKey, pinned)
	if x.reconcile(); x.host.loginAttempts() != 0 {
		t.Error("the key was accepted by the fingerprint of another")
	}
	x.annotateInstance(v1alpha1.AnnotationAcceptHostKey, x.host.keyFingerprint())
	if instance, _ := x.reconcile(); instance.Status.HostKey.Fingerprint != x.host.keyFingerprint() ||
		x.host.loginAttempts() == 0 {
		t.Error("the accepted key is not pinned")
	}
}

func TestHostKey_ExpectedKeyEnforced(t *testing.T) {
	_, other := newPrivateKey(t)
	foreign := ssh.FingerprintSHA256(other.Signer().PublicKey())
	announcedBy := map[string]func(x *trial, annotation string){
		"by the Machine": func(x *trial, annotation string) {
			of := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: v1alpha1.MachineNamespace, Name: machine, UID: "machine-uid",
				Annotations: map[string]string{v1alpha1.AnnotationExpectedHostKey: annotation},
			}}
			if err := x.Client.Create(t.Context(), of); err != nil {
				if err := x.Client.Delete(t.Context(), of); err != nil {
					t.Fatal(err)
				}
				of.ResourceVersion = ""
				if err := x.Client.Create(t.Context(), of); err != nil {
					t.Fatal(err)
				}
			}
		},
		"by the WindowsInstance": func(x *trial, annotation string) {
			x.annotateInstance(v1alpha1.AnnotationExpectedHostKey, annotation)
		},
	}
	for name, announce := range announcedBy {
		t.Run(name+" lets in the host that has it", func(t *testing.T) {
			x := newTrial(t, machineInstance())
			announce(x, foreign+", "+x.host.keyFingerprint())
			instance, _ := x.reconcile()
			if instance.Status.HostKey == nil || instance.Status.HostKey.Fingerprint != x.host.keyFingerprint() {
				t.Errorf("pinned is %+v: %s", instance.Status.HostKey, instance.Status.NextAction)
			}
		})
		t.Run(name+" keeps every other host away, until it is corrected", func(t *testing.T) {
			x := newTrial(t, machineInstance())
			announce(x, foreign)
			instance, _ := x.reconcile()
			unexpected := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse,
				string(remote.ReasonHostKeyUnexpected))
			for _, fingerprint := range []string{foreign, x.host.keyFingerprint()} {
				if !strings.Contains(unexpected.Message, fingerprint) {
					t.Errorf("%s is not in %q", fingerprint, unexpected.Message)
				}
			}
			if !strings.Contains(instance.Status.NextAction, v1alpha1.AnnotationExpectedHostKey) {
				t.Errorf("next is %q", instance.Status.NextAction)
			}
			if x.host.loginAttempts() != 0 || instance.Status.HostKey != nil {
				t.Errorf("%d attempts to log in, pinned is %+v", x.host.loginAttempts(), instance.Status.HostKey)
			}
			announce(x, x.host.keyFingerprint())
			if instance, _ = x.reconcile(); instance.Status.HostKey == nil {
				t.Errorf("it does not go on: %s", instance.Status.NextAction)
			}
		})
		t.Run(name+" in a form that nobody can read keeps all hosts away", func(t *testing.T) {
			x := newTrial(t, machineInstance())
			announce(x, x.host.keyFingerprint()+",MD5:16:27:ac")
			instance, _ := x.reconcile()
			unreadable := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse,
				string(remote.ReasonHostKeyUnexpected))
			if !strings.Contains(unreadable.Message, "MD5:16:27:ac") || x.countDials() != 0 {
				t.Errorf("%d connections, the message is %q", x.countDials(), unreadable.Message)
			}
		})
	}
}

func TestConnect_ForbiddenAddressNotDialed(t *testing.T) {
	for address, reason := range map[string]string{
		"172.30.0.1":              string(remote.ReasonAddressNotAllowed),
		"10.132.7.7":              string(remote.ReasonAddressNotAllowed),
		"api-int.lab.example.com": v1alpha1.ReasonInvalidEntry,
		"127.0.0.1":               v1alpha1.ReasonInvalidEntry,
		"169.254.169.254":         v1alpha1.ReasonInvalidEntry,
	} {
		t.Run(address, func(t *testing.T) {
			instance := listedInstance()
			instance.Spec.Address = address
			x := newTrial(t, instance)
			instance, _ = x.reconcile()
			expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, reason)
			if x.countDials() != 0 {
				t.Errorf("%d connections", x.countDials())
			}
		})
	}
}

//
func TestConnect_InvalidEntryReported(t *testing.T) {
	for name, c := range map[string]struct{ user, fault, want string }{
		"an entry that cannot be read":            {"", "the value has two users", "the value has two users"},
		"an entry that keeps its former user":     {"Administrator", "", ""},
		"a user name that Windows does not allow": {"a:b", "", "does not allow"},
		"an instance without a user name":         {"", "", "the user name is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			instance := listedInstance()
			instance.Spec.Username = c.user
			if c.fault != "" {
				instance.Annotations = map[string]string{v1alpha1.AnnotationEntryFault: c.fault}
			}
			x := newTrial(t, instance)
			instance, _ = x.reconcile()
			if c.want == "" {
				if instance.Status.Summary == v1alpha1.ReasonInvalidEntry {
					t.Errorf("%+v", instance.Status)
				}
				return
			}
			reachable := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonInvalidEntry)
			if events := strings.Join(x.popEvents(), "\n"); !strings.Contains(reachable.Message, c.want) || !strings.Contains(events, c.want) {
				t.Errorf("the message is %q, the events are %s", reachable.Message, events)
			}
		})
	}
}

// cloneInstance creates another instance with the host key of the trial's host, and with another machine ID.
func (x *trial) cloneInstance(name string) *v1alpha1.WindowsInstance {
	x.t.Helper()
	of := x.getInstance()
	clone := &v1alpha1.WindowsInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name},
		Spec: v1alpha1.WindowsInstanceSpec{Address: "10.0.128.9", Username: "Administrator",
			Source: v1alpha1.Source{ConfigMapKey: "10.0.128.9"}},
		Status: v1alpha1.WindowsInstanceStatus{
			HostKey: of.Status.HostKey.DeepCopy(), Host: &v1alpha1.HostStatus{Name: name, MachineID: "another-machine",
				Addresses: []string{"10.0.128.9"}},
		},
	}
	x.createInstance(clone)
	return clone
}

func TestHostKey_SharedKeyReportedOnce(t *testing.T) {
	x := newTrial(t)
	instance := listedInstance()
	x.asNode(instance, x.key.Hash())
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.Host.MachineID = "this-machine" })
	clone := x.cloneInstance("cloned")
	for range 3 {
		instance, _ = x.reconcile()
		reachable := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
		if !strings.Contains(reachable.Message, "WindowsInstance cloned (10.0.128.9)") {
			t.Errorf("the message is %q", reachable.Message)
		}
	}
	expectCondition(t, instance, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if events := x.popEvents(); len(events) != 1 || !strings.Contains(events[0], "Warning HostKeyReused") ||
		!strings.Contains(events[0], "cloned") {
		t.Errorf("the events are %q", events)
	}
	if x.countDials() != 0 {
		t.Errorf("%d connections were made for it", x.countDials())
	}
	if err := x.Client.Delete(t.Context(), clone); err != nil {
		t.Fatal(err)
	}
	instance, _ = x.reconcile()
	reachable := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if reachable.Message != "It was so." || len(x.popEvents()) > 0 {
		t.Errorf("when it has ended the message is %q", reachable.Message)
	}
}

// Both hosts are reported, including the first host, which has nothing else to do.
func TestHostKey_SharedKeyEnqueuesInstances(t *testing.T) {
	x := newTrial(t)
	x.asNode(listedInstance(), x.key.Hash())
	clone := x.cloneInstance("cloned")
	if requests := x.instancesWithHostKey(t.Context(), clone); len(requests) != 1 || requests[0].Name != machine {
		t.Errorf("looked at are %v", requests)
	}
	unseen := clone.DeepCopy()
	unseen.Status.HostKey = nil
	if requests := x.instancesWithHostKey(t.Context(), unseen); len(requests) != 0 {
		t.Errorf("looked at are %v", requests)
	}
	renamed := clone.DeepCopy()
	renamed.Status.Host.Name, renamed.Status.NextAction = "other", "waits"
	reinstalled := clone.DeepCopy()
	reinstalled.Status.Host.MachineID = "reinstalled"
	for name, c := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"a host that shows its key for the first time": {unseen, clone, true},
		"a host that has become another":               {clone, reinstalled, true},
		"all else":                                     {clone, renamed, false},
	} {
		if hostKeyChanged().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}) != c.want {
			t.Errorf("%s: want %t", name, c.want)
		}
	}
	if !hostKeyChanged().Delete(event.DeleteEvent{Object: clone}) {
		t.Error("the end of the other is not looked at")
	}
}

// The reuse of a key by many hosts fits into a condition.
func TestHostKey_SharedKeyMessageIsBounded(t *testing.T) {
	x := newTrial(t)
	x.asNode(listedInstance(), x.key.Hash())
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) { status.Host.MachineID = "this-machine" })
	for i := range 20 {
		x.cloneInstance(fmt.Sprintf("cloned-%02d-%s", i, strings.Repeat("n", 200)))
	}
	for range 2 {
		x.reconcile()
	}
	reachable := meta.FindStatusCondition(x.getInstance().Status.Conditions, v1alpha1.ConditionReachable)
	checkBounded(t, "the message", reachable.Message, maxMessageLength)
	events := x.popEvents()
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
}

// A restart of the host delays the report of a fault, but does not hide the fault.
func TestConnect_AgentFaultReportedDuringRestart(t *testing.T) {
	x := newTrial(t)
	x.withHostileAgent(func(agentapi.Line) []agentapi.Line { return nil })
	x.createInstance(listedInstance())
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) {
		status.RestartStartedAt = ptr.To(metav1.NewTime(noon))
	})
	instance, _ := x.reconcile()
	prepared := expectCondition(t, instance, v1alpha1.ConditionPrepared, metav1.ConditionFalse, v1alpha1.ReasonRebooting)
	if !strings.Contains(prepared.Message, "The host restarts. Its SSH server responds, but the agent does not: ") ||
		strings.HasSuffix(prepared.Message, ": ") {
		t.Errorf("the message is %q", prepared.Message)
	}
	x.clock.Step(rebootTimeout + time.Minute)
	instance, _ = x.reconcile()
	reachable := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse,
		string(remote.ReasonAgentStartFailed))
	if !strings.HasSuffix(prepared.Message, reachable.Message) {
		t.Errorf("then the message is %q", reachable.Message)
	}
}

// The queue keeps the shortest of several delays. A delay requested at the start of a job would shorten the delay
// after its failure.
func TestConnect_UnreachableHostRetriedWithBackoff(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.host.switchOff(true)
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(listedInstance())}
	var delays []time.Duration
	for attempt := range 4 {
		for start := x.Jobs.CountStarted(); x.Jobs.CountStarted() == start; {
			if next, err := x.Reconcile(t.Context(), request); err != nil || next.RequeueAfter != 0 {
				t.Fatalf("attempt %d: while it is connected to, the next reconcile is in %s: %v", attempt, next.RequeueAfter, err)
			}
		}
		x.awaitJobs()
		next, err := x.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		delays = append(delays, next.RequeueAfter)
	}
	if want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}; !slices.Equal(delays, want) {
		t.Errorf("the delays are %v, want %v", delays, want)
	}
}
