package machines

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/userdata"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// The operator waits for a host that does not accept logins yet. This is neither a failure nor a reason to delete
// the Machine. R-036
func TestUserData_OperatorWaitsUntilFinished(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	restore := l.InjectVM(testenv.VMFault{Machine: "*", KeyRefusalDuration: 3e9})
	defer restore()
	l.startOperator()
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	name := l.waitForOnlyMachine("windows")
	instance := l.waitForInstance(name, "to wait for its user data", func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Status.Summary == v1alpha1.ReasonUserDataInProgress
	})
	if instance.Status.NextAction == "" {
		t.Error("the status does not say what happens next")
	}
	if got := l.waitUntilReady("windows", 1); got[0] != name {
		t.Errorf("Machine %s was replaced by %s", name, got[0])
	}
	var events corev1.EventList
	l.requireNoError(l.Client.List(t.Context(), &events, client.InNamespace(l.Namespace())))
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning && event.InvolvedObject.Name == name &&
			strings.Contains(event.Reason, "Authentication") {
			t.Errorf("a warning tells of what was merely waiting: %s: %s", event.Reason, event.Message)
		}
	}
}

// authorizedKey returns the operator's line in authorized_keys.
func (l lab) authorizedKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(l.PublicKey())))
}

//
func TestUserData_SecretCorrectedAndRecreated(t *testing.T) {
	l := start(t, "AWS", testenv.Options{})
	l.startOperator()
	key := client.ObjectKey{Namespace: v1alpha1.MachineNamespace, Name: "windows-user-data"}
	secret := &corev1.Secret{}
	right := func(s *corev1.Secret) bool {
		settings, err := userdata.ParseHeader(s.Data["userData"])
		return err == nil && settings.PublicKey == l.authorizedKey()
	}
	waitForSecret := func(what string, condition func(*corev1.Secret) bool) {
		t.Helper()
		l.waitForSecret(key, what, func(s *corev1.Secret) bool {
			*secret = *s
			return condition(s)
		})
	}
	waitForSecret("to be made before there is any Machine", right)
	uid := secret.UID
	t.Run("an edit is corrected, and the Secret stays the same one", func(t *testing.T) {
		after := secret.DeepCopy()
		after.Data["userData"] = []byte("<powershell>Remove-Item C:\\</powershell>")
		l.requireNoError(l.Client.Patch(t.Context(), after, client.MergeFrom(secret)))
		waitForSecret("to be put right", right)
		if secret.UID != uid {
			t.Error("it was made anew")
		}
	})
	t.Run("a deleted Secret comes back", func(t *testing.T) {
		l.requireNoError(l.Client.Delete(t.Context(), secret.DeepCopy()))
		waitForSecret("to come back", func(s *corev1.Secret) bool { return s.UID != uid && right(s) })
	})
}

// On vSphere the template contains the key, independent of the user data. R-033
func TestUserData_NotNeededOnVSphere(t *testing.T) {
	l := start(t, "VSphere", testenv.Options{})
	l.startOperator()
	l.createMachineSet("winworker", 1, testenv.MachineSetOptions{UserDataSecret: "worker-user-data-managed"})
	name := l.waitUntilReady("winworker", 1)[0]
	if node := l.nodeOf(name); node.Name != name {
		t.Errorf("the node is called %s: the host did not get the Machine's name %s", node.Name, name)
	}
}
