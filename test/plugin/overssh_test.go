package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/podexec"
	"github.com/windows-machine-config/wmco/lab/fakepod"
	"github.com/windows-machine-config/wmco/lab/secretscan"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

var errGone = errors.New("the administrator is gone")

// output is a buffer that supports concurrent reads and writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// writeHostFile writes a file on a host.
func (l lab) writeHostFile(name, path, content string) {
	l.Helper()
	drive := l.Host(name).Machine().Drive()
	l.requireNoError(drive.MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
	l.requireNoError(drive.WriteFile(path, []byte(content)))
}

// The API server cannot reach the kubelets in this lab, as if they did not respond.
func (l lab) testLogsOverSSH(pod fakepod.Pod, name string) {
	l.Helper()
	log := nodespec.LogDirectory(nodespec.ServiceKubelet) + `\kubelet.log`
	const before = "time=2026-01-01T00:00:00Z one\ntime=2026-01-01T00:00:01Z two\n"
	l.writeHostFile("instance-1", log, before)
	l.checkOutput(pod, 0, []string{"the operator reads them over SSH", "\nkubelet\n"}, "logs", name)
	l.checkOutput(pod, 0, []string{"one\ntime=2026-01-01T00:00:01Z two\n"}, "logs", name, "kubelet")
	if out, _ := l.runInPod(pod, "logs", name, "kubelet", "--tail=1"); strings.Contains(out, "one") || !strings.Contains(out, "two") {
		l.Errorf("the last line is %q", out)
	}
	l.writeHostFile("instance-1", nodespec.LogRoot+`\database\database.log`, "of no concern\n")
	l.checkOutput(pod, 1, []string{"service database has no log", "a node has no such service"}, "logs", name, "database")

	out := &output{}
	ctx, interrupt := context.WithCancelCause(l.Context())
	defer interrupt(nil)
	ended := make(chan error, 1)
	go func() {
		_, err := pod.Run(ctx, []string{"logs", name, "kubelet", "--follow", "--since=1h"}, podexec.Streams{Out: out, ErrOut: out})
		ended <- err
	}()
	l.writeHostFile("instance-1", log, fmt.Sprintf("%stime=%s three\n", before, time.Now().UTC().Format(time.RFC3339)))
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, e2e.WaitTimeout, true, func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "three"), nil
	}); err != nil || strings.Contains(out.String(), "one") {
		l.Fatalf("it has printed %q, %v", out.String(), err)
	}
	interrupt(errGone)
	if err := <-ended; !errors.Is(err, errGone) {
		l.Errorf("it has ended with %v", err)
	}
}

// testInterruptedPlan interrupts a plan while the agent reads the NodeSpec.
func (l lab) testInterruptedPlan(pod fakepod.Pod, name string) {
	l.Helper()
	ctx, interrupt := context.WithCancelCause(l.Context())
	defer interrupt(nil)
	reached, done := make(chan struct{}), make(chan struct{})
	reach := sync.OnceFunc(func() { close(reached) })
	remove := l.Host("instance-1").Machine().OnOperation(func(o fake.Operation) error {
		if o.Interface == "Files" && strings.HasPrefix(o.Target, nodespec.InboxRoot+`\visit-`) {
			reach()
			<-done
		}
		return nil
	})
	defer remove()
	ended := make(chan error, 1)
	go func() {
		_, err := pod.Run(ctx, []string{"plan", name}, podexec.Streams{Out: &output{}, ErrOut: &output{}})
		ended <- err
	}()
	select {
	case <-reached:
	case err := <-ended:
		l.Fatalf("the plan has ended before it was interrupted: %v", err)
	}
	interrupt(errGone)
	close(done)
	if err := <-ended; !errors.Is(err, errGone) || strings.Contains(err.Error(), "may remain") {
		l.Errorf("it ends with %v", err)
	}
	l.checkNothingLeft("instance-1")
}

// loginFaults contains faults that prevent logins.
var loginFaults = []winhost.Fault{winhost.RefuseConnection, winhost.HangBeforeBanner, winhost.RejectKey, winhost.RefuseConnection,
	winhost.HangBeforeBanner}

const fleetSize = 50

// createFleet creates instances for the hosts of an environment that are not nodes yet. Every tenth host is dead. It
// returns the names of the dead hosts.
func (l lab) createFleet() (names []string) {
	l.Helper()
	for n, h := range l.Hosts() {
		i := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: h.Options.Name},
			Spec: v1alpha1.WindowsInstanceSpec{Address: h.Options.Address, Username: h.Options.Username,
				Source: v1alpha1.Source{ConfigMapKey: h.Options.Address}}}
		l.requireNoError(l.Client.Create(l.Context(), i))
		state, reason := metav1.ConditionTrue, v1alpha1.ReasonSucceeded
		if n%10 == 3 {
			h.Inject(loginFaults[n/10], loginFaults[n/10].Example())
			names = append(names, h.Options.Name)
			state, reason = metav1.ConditionFalse, "Unreachable"
		}
		i.Status.ObservedGeneration, i.Status.Summary = i.Generation, "FeaturesPending"
		meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReachable, Status: state, Reason: reason})
		meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason})
		l.requireNoError(l.Client.Status().Update(l.Context(), i))
	}
	return names
}

func TestGather_DeadHostsDelayLessThanOneMinute(t *testing.T) {
	l := lab{t, e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t), PayloadDir: files.Directory(t), Hosts: testenv.Hosts(fleetSize)})}
	e2e.Install(t, l.Environment)
	var pod fakepod.Pod
	running, err := l.RunOperator(func(c *operator.Config) { pod.Config = *c })
	l.requireNoError(err)
	l.requireNoError(running.Stop()) // the operator would remove unlisted instances
	unreachableNames := l.createFleet()
	secrets := l.prepareSecrets("instance-1")

	dir := t.TempDir()
	start := time.Now()
	out, status := l.runInPod(pod, "gather", "--dest-dir", dir)
	if elapsed := time.Since(start); elapsed > time.Minute {
		t.Errorf("it has taken %s", elapsed)
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	l.requireNoError(err)
	gaps, err := os.ReadFile(filepath.Join(dir, "gaps.txt"))
	l.requireNoError(err)
	first, _, _ := strings.Cut(out, "another reason")
	for _, name := range unreachableNames {
		if !strings.Contains(first, name) || !strings.Contains(string(page), name) || !strings.Contains(string(gaps), "hosts/"+name+"/host.json: ") {
			t.Errorf("host %s is not named as dead:\n%s\n%s", name, out, gaps)
		}
	}
	if want := fmt.Sprintf("%d of %d hosts are unreachable", len(loginFaults), fleetSize); status != 0 || !strings.Contains(out, want) || !strings.Contains(string(page), want) {
		t.Errorf("status %d, want %q:\n%s", status, want, out)
	}
	reports, err := filepath.Glob(filepath.Join(dir, "hosts", "*", "host.json"))
	if err != nil || len(reports) != fleetSize-len(loginFaults) {
		t.Errorf("of %d hosts there is a report, %v\n%s", len(reports), err, gaps)
	}
	l.checkFileContains(filepath.Join(dir, "hosts", "instance-1", "host.json"), `"hostName"`, `"sshd"`, "containerd does not start", `"Database"`)
	l.checkFileContains(filepath.Join(dir, "hosts", "instance-1", "logs", nodespec.ServiceAgent+".log"), "the agent says this")
	for _, h := range l.Hosts() {
		reason := "the operator has not checked the current state of this host yet"
		if slices.Contains(unreachableNames, h.Options.Name) {
			reason = "host " + h.Options.Address
		}
		l.checkFileContains(filepath.Join(dir, "hosts", h.Options.Name, "plan.txt"), h.Options.Name+" ("+h.Options.Address+"): not known\n  "+reason)
	}
	l.checkNoSecrets(secrets, dir)
	for _, h := range l.Hosts() {
		l.checkNothingLeft(h.Options.Name)
	}
}

// prepareSecrets prepares a host with secrets that must not get into a support case.
func (l lab) prepareSecrets(name string) secretscan.Secrets {
	l.Helper()
	secrets := secretscan.Secrets{}
	secrets.AddKey("the operator's SSH key", l.PrivateKey())
	for _, what := range []string{"command line", "environment", "log", "event", "file"} {
		secrets["what is in the "+what+" of a program of others"] = []string{"canary-" + what}
	}
	l.writeHostFile(name, nodespec.LogPath(nodespec.ServiceAgent), "2026-01-01T00:00:00Z the agent says this\n")
	l.writeHostFile(name, nodespec.LogRoot+`\database\database.log`, "canary-log")
	l.writeHostFile(name, nodespec.Root+`\config.json`, "canary-file")
	machine := l.Host(name).Machine()
	h := machine.Host()
	l.requireNoError(h.Services.Configure(l.Context(), host.ServiceConfig{Name: "Database", StartType: host.StartManual,
		CommandLine: `C:\Windows\System32\svchost.exe --password "canary-command line"`, Environment: []string{"PASSWORD=canary-environment"}}))
	l.requireNoError(h.EventLog.Report(l.Context(), host.Event{Source: "Database", Level: host.EventError, ID: 1, Message: "canary-event"}))
	l.requireNoError(h.EventLog.Report(l.Context(), host.Event{Source: nodespec.ServiceAgent, Level: host.EventError, ID: 3, Message: "containerd does not start"}))
	return secrets
}

// checkFileContains checks that a file contains the words.
func (l lab) checkFileContains(path string, words ...string) {
	l.Helper()
	content, err := os.ReadFile(path)
	l.requireNoError(err)
	for _, word := range words {
		if !bytes.Contains(content, []byte(word)) {
			l.Errorf("%s has no %q:\n%.4000s", path, word, content)
		}
	}
}

// checkNoSecrets checks that the files of a directory contain no secret.
func (l lab) checkNoSecrets(secrets secretscan.Secrets, dir string) {
	l.Helper()
	l.requireNoError(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, secret := range secrets.In(content) {
			l.Errorf("%s holds %s", path, secret)
		}
		return err
	}))
}
