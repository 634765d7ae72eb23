// Package plugin verifies that kubectl windows reports the operator's actions, and that the operator acts on its
// requests. It uses the real control plane and simulated hosts.
package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plugin"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

var (
	shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift, APIIntURL: "https://127.0.0.1"})
	files  = e2e.NewPayload("../../build/wicd.exe", payload.Options{SizePercent: 25})
)

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, shared.Stop, files.Remove)) }

// lab is an environment with the plugin.
type lab struct {
	*testing.T
	*testenv.Environment
}

// runWindows runs kubectl windows, and returns the output.
func (l lab) runWindows(arguments ...string) (out, messages string, err error) {
	l.Helper()
	var stdout, stderr bytes.Buffer
	root := plugin.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr},
		clock.RealClock{}, "test")
	root.SetArgs(append(arguments, "--kubeconfig="+l.Cluster().Kubeconfig))
	ctx, cancel := context.WithTimeout(l.Context(), e2e.WaitTimeout)
	defer cancel()
	err = root.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// checkSuccess runs kubectl windows, and checks that the output contains the words.
func (l lab) checkSuccess(words string, arguments ...string) {
	l.Helper()
	out, messages, err := l.runWindows(arguments...)
	if err != nil || !strings.Contains(out, words) {
		l.Fatalf("kubectl windows %s: %v\n%s%s, want %q", strings.Join(arguments, " "), err, out, messages, words)
	}
}

// runUntilOutput runs kubectl windows until the output contains the words.
func (l lab) runUntilOutput(words string, arguments ...string) {
	l.Helper()
	output := ""
	if err := wait.PollUntilContextTimeout(l.Context(), 200*time.Millisecond, e2e.WaitTimeout, true,
		func(context.Context) (bool, error) {
			var err error
			output, _, err = l.runWindows(arguments...)
			return strings.Contains(output, words), err
		}); err != nil {
		l.Fatalf("kubectl windows %s: %v\n%s, want %q", strings.Join(arguments, " "), err, output, words)
	}
}

// checkError runs kubectl windows, and checks that it fails with the words in the error.
func (l lab) checkError(words string, arguments ...string) {
	l.Helper()
	if out, _, err := l.runWindows(arguments...); err == nil || !strings.Contains(err.Error(), words) {
		l.Fatalf("kubectl windows %s: %v\n%s, want an error with %q", strings.Join(arguments, " "), err, out, words)
	}
}

func (l lab) getInstance(host string) *v1alpha1.WindowsInstance {
	l.Helper()
	instance, err := l.Instance(l.Context(), host)
	if err != nil || instance == nil {
		l.Fatalf("the instance of %s: %v, %v", host, instance, err)
	}
	return instance
}

// waitForSummary waits until an instance is in a state.
func (l lab) waitForSummary(host, state string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), e2e.WaitTimeout)
	defer cancel()
	if err := l.WaitForInstance(ctx, l.Host(host), "to be "+state, func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Status.Summary == state
	}); err != nil {
		l.Fatal(err)
	}
}

func TestStoryAnAdministratorLooksAfterHosts(t *testing.T) {
	l := lab{t, e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t), PayloadDir: files.Directory(t),
		Hosts: testenv.Hosts(2)})}
	e2e.Install(t, l.Environment)
	l.checkSuccess("There are no Windows hosts in namespace "+testenv.Namespace, "status")
	if _, err := l.RunOperator(); err != nil {
		t.Fatal(err)
	}
	if err := l.ListHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"instance-1", "instance-2"} {
		l.waitForSummary(host, v1alpha1.ReasonReady)
	}
	l.checkSuccess(" Ready ", "status", "--wait=Ready", "--timeout=3m")
	l.runUntilOutput("Disruptions: 2 of 2 nodes", "status")
	first := l.getInstance("instance-1").Name

	t.Run("a host goes by its name, its Node's and its address", func(t *testing.T) {
		l := lab{t, l.Environment}
		for _, name := range []string{first, l.Host("instance-1").NodeName(), l.getInstance("instance-1").Spec.Address} {
			l.checkSuccess("Name:        "+first, "status", name)
		}
		l.checkError(`no WindowsInstance, Node or address of a Windows host is "nosuch"; there are: `+first, "status", "nosuch")
	})
	t.Run("objects are printed as the API server has them", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.checkSuccess("windowsinstance.windowsmachineconfig.openshift.io/"+first+"\n", "status", first, "-o", "name")
		l.checkSuccess(l.getInstance("instance-1").Status.SpecDigest, "status", "-o", "jsonpath={.items[*].status.specDigest}")
	})
	t.Run("the user data of new Machines is shown, for another platform too", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.checkSuccess("# user: Administrator\n", "userdata")
		l.checkSuccess("# user: capi\n", "userdata", "--platform=Azure")
		l.checkError(`invalid --platform "Sun": use one of AWS,`, "userdata", "--platform=Sun")
		l.checkError(`User "nobody" cannot get resource "secrets"`, "userdata", "--as=nobody")
	})
	t.Run("a namespace without an operator is said to have none", func(t *testing.T) {
		lab{t, l.Environment}.checkSuccess("No operator is running in namespace default", "status", "-n", "default")
	})
	t.Run("a missing right is named", func(t *testing.T) {
		lab{t, l.Environment}.checkError(`User "nobody" cannot list resource "windowsinstances"`, "status", "--as=nobody")
	})
	t.Run("a condition that does not come is waited for no longer than said", func(t *testing.T) {
		lab{t, l.Environment}.checkError("after 1s the condition Painted is not True for 2 of 2 hosts", "status", "--wait=Painted",
			"--timeout=1s")
	})
	t.Run("a paused host is left alone until it is resumed", func(t *testing.T) {
		l := lab{t, l.Environment}
		l.checkSuccess(first+": paused", "pause", first)
		l.waitForSummary("instance-1", v1alpha1.ReasonPaused)
		l.checkSuccess("kubectl windows resume "+first, "status", first)
		l.checkSuccess(first+": resumed", "resume", first)
		l.waitForSummary("instance-1", v1alpha1.ReasonReady)
	})
	t.Run("what did not fail is not tried again", func(t *testing.T) {
		lab{t, l.Environment}.checkError("no change of "+first+" has failed", "retry", first)
	})
	t.Run("a restart needs a yes, and is waited for", func(t *testing.T) {
		l := lab{t, l.Environment}
		boot := l.getInstance("instance-1").Status.Host.BootID
		l.checkError("use --yes to confirm", "reboot", first)
		if now := l.getInstance("instance-1").Status.Host.BootID; now != boot {
			t.Fatal("the host has restarted without a yes")
		}
		l.checkSuccess(first+": restarted", "reboot", first, "--yes")
		if now := l.getInstance("instance-1").Status.Host.BootID; now == boot {
			t.Error("the host has not restarted")
		}
	})
	t.Run("what a support case needs is gathered, and no secret", l.testGather)
	t.Run("the dead of a large fleet are named", l.testGatherDeadHosts)
	t.Run("the host key of a reinstalled host is accepted", l.testAcceptKey)
	t.Run("a host that is gone for good is forgotten", l.testForget)
}

func (l lab) testGather(t *testing.T) {
	l.T = t
	secrets := secretscan.Secrets{}
	secrets.AddKey("the operator's SSH key", l.PrivateKey())
	dir := t.TempDir()
	l.checkSuccess(" files of 2 hosts", "gather", "--dest-dir", dir)
	first := l.getInstance("instance-1").Name
	for _, name := range []string{"index.html", "status.txt", "gaps.txt", "policy.yaml", "events.yaml", "windows-instances.yaml", "cluster/nodes.yaml",
		"operator/deployments.yaml", "hosts/" + first + "/windowsinstance.yaml", "hosts/" + first + "/status.txt"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The API server cannot reach the simulated kubelets here, as if their hosts were dead.
	gaps, err := os.ReadFile(filepath.Join(dir, "gaps.txt"))
	if err != nil || !strings.Contains(string(gaps), "hosts/"+first+"/logs: the kubelet of node") {
		t.Errorf("gaps.txt does not name the logs that are missing: %v\n%s", err, gaps)
	}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, secret := range secrets.In(content) {
			t.Errorf("%s holds %s", path, secret)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	l.checkError("no WindowsInstance", "gather", "nosuch", "--dest-dir", dir)
	l.checkError(`User "nobody" cannot list`, "gather", "--as=nobody", "--dest-dir", dir)
}

// testGatherDeadHosts gathers a fleet of 50 hosts in a namespace without an operator. Every tenth host is dead.
func (l lab) testGatherDeadHosts(t *testing.T) {
	l.T = t
	const namespace = "many"
	if err := l.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		name := fmt.Sprintf("win-%02d", n)
		i := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.WindowsInstanceSpec{Address: fmt.Sprintf("10.9.0.%d", n), Username: "Administrator",
				Source: v1alpha1.Source{ConfigMapKey: name}}}
		if err := l.Client.Create(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		state, reason := metav1.ConditionTrue, v1alpha1.ReasonSucceeded
		i.Status.ObservedGeneration, i.Status.Summary = i.Generation, v1alpha1.ReasonReady
		i.Status.NodeRef = &v1alpha1.NodeReference{Name: "node-of-" + name}
		if n%10 == 3 {
			state, reason = metav1.ConditionFalse, "ConnectionTimedOut"
			i.Status.Summary = reason
		}
		for _, kind := range []string{v1alpha1.ConditionReachable, v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate} {
			meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kind, Status: state, Reason: reason})
		}
		if err := l.Client.Status().Update(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	const want = "5 of 50 hosts are unreachable: win-03, win-13, win-23, win-33, win-43\n"
	l.checkSuccess(want, "gather", "--namespace", namespace, "--dest-dir", dir)
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil || !strings.Contains(string(page), "5 of 50 hosts are unreachable") || strings.Count(string(page), "<svg") != 50 {
		t.Errorf("the page names other hosts: %v\n%.3000s", err, page)
	}
	for _, host := range []string{"win-00", "win-03", "win-49"} {
		if info, err := os.Stat(filepath.Join(dir, "hosts", host, "status.txt")); err != nil || info.Size() == 0 {
			t.Errorf("nothing was collected of %s: %v", host, err)
		}
	}
}

func (l lab) testAcceptKey(t *testing.T) {
	l.T = t
	first := l.getInstance("instance-1").Name
	l.Host("instance-1").Inject(winhost.ChangedHostKey, winhost.Parameters{})
	l.checkSuccess("", "reboot", first, "--yes", "--wait=false") // so that the operator connects
	l.waitForSummary("instance-1", "HostKeyChanged")
	l.checkError("invalid fingerprint: use SHA256: and 43 characters", "accept-host-key", first, "SHA256:short", "--yes")
	key, err := l.Host("instance-1").HostKey()
	if err != nil {
		t.Fatal(err)
	}
	l.checkSuccess(first+": the key is accepted", "accept-host-key", first, ssh.FingerprintSHA256(key), "--yes")
}

func (l lab) testForget(t *testing.T) {
	l.T = t
	second := l.getInstance("instance-2").Name
	l.checkError("is not being removed: first delete key", "forget", second, "--yes")
	l.Host("instance-2").Machine().PowerOff()
	if err := l.ListHosts(t.Context(), "instance-1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), e2e.WaitTimeout)
	defer cancel()
	if err := l.WaitForInstance(ctx, l.Host("instance-2"), "to be removed", func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Spec.DesiredState == v1alpha1.DesiredStateRemoved
	}); err != nil {
		t.Fatal(err)
	}
	l.checkSuccess(second+": removed", "forget", second, "--yes")
	if instance, err := l.Instance(t.Context(), "instance-2"); err != nil || instance != nil {
		t.Errorf("the instance is still there: %v", err)
	}
}
