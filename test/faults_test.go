package test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// faultCase describes how a fault appears in the status of its host. Without a reason, the host becomes Ready in
// spite of the fault.
type faultCase struct {
	fault      winhost.Fault
	host       string                                 // name of the host; the fault's when empty
	parameters *winhost.Parameters                    // the fault's example when nil
	inject     func(h *testenv.Host) (restore func()) // for a fault that does not exist from the start

	meanwhile string // next action in the status before the limit has passed

	condition, reason string
	words             string        // in the condition's message
	next              string        // next action in the status, of the operator or the administrator
	step              fake.Kind     // journal entry that starts the limited step; the first contact when empty
	timeout           time.Duration // documented limit, from the start of that step
	heals             bool          // without intervention
}

func (c faultCase) hostName() string {
	if c.host != "" {
		return c.host
	}
	return string(c.fault)
}

// injectFault injects the fault into the host.
func (c faultCase) injectFault(h *testenv.Host) (restore func()) {
	if c.inject != nil {
		return c.inject(h)
	}
	parameters := c.fault.Example()
	if c.parameters != nil {
		parameters = *c.parameters
	}
	return h.Inject(c.fault, parameters)
}

// injectAtRestart returns a function that injects a fault when a host restarts for the first time.
func injectAtRestart(fault winhost.Fault) func(*testenv.Host) func() {
	return func(h *testenv.Host) func() {
		restore := func() {}
		h.Machine().OnShutdown(sync.OnceFunc(func() { restore = h.Inject(fault, fault.Example()) }))
		return func() { restore() }
	}
}

const (
	connects  = "connects to"
	retriesAt = "The operator retries at"
)

// faultCases returns the cases, with limits given by the constants that document them.
func faultCases(agentBytes int64) []faultCase {
	return []faultCase{
		{fault: winhost.SlowBoot, parameters: &winhost.Parameters{Duration: 90 * time.Second}, step: fake.KindReboot,
			timeout:   remote.DefaultRebootTimeout,
			condition: v1alpha1.ConditionPrepared, reason: v1alpha1.ReasonRebooting, words: "restarts",
			next: "at most 15 minutes", heals: true},
		{fault: winhost.RefuseConnection, timeout: remote.DefaultDialTimeout,
			condition: v1alpha1.ConditionReachable, reason: "Unreachable", words: "refused", next: retriesAt},
		{fault: winhost.HangBeforeBanner, step: fake.KindConnection, timeout: remote.DefaultHandshakeTimeout, meanwhile: connects,
			condition: v1alpha1.ConditionReachable, reason: "ConnectionTimedOut", words: "waited 1m0s", next: retriesAt},
		{fault: winhost.HangAfterAuth, step: winhost.KindLogin, timeout: remote.DefaultHandshakeTimeout, meanwhile: "the step Inspect",
			condition: v1alpha1.ConditionReachable, reason: "ConnectionTimedOut", words: "waited", next: retriesAt},
		{fault: winhost.RejectKey, timeout: remote.DefaultHandshakeTimeout,
			condition: v1alpha1.ConditionReachable, reason: "AuthenticationFailed", words: "cloud-private-key",
			next: "authorized_keys"},
		{fault: winhost.ChangedHostKey, inject: injectAtRestart(winhost.ChangedHostKey), step: fake.KindConnection,
			timeout:   remote.DefaultHandshakeTimeout,
			condition: v1alpha1.ConditionReachable, reason: "HostKeyChanged", words: "host key",
			next: v1alpha1.AnnotationAcceptHostKey},
		{fault: winhost.FillDisk, host: "disk-full-for-the-agent", step: fake.KindSFTP, timeout: remote.DefaultSFTPStallTimeout,
			parameters: &winhost.Parameters{Bytes: 64 << 10},
			condition:  v1alpha1.ConditionReachable, reason: "DiskFull", words: "drive C: has no space for", next: "Free space"},
		{fault: winhost.FillDisk, host: "disk-full-for-the-payload", step: fake.KindExec, timeout: remote.DefaultSFTPStallTimeout,
			parameters: &winhost.Parameters{Bytes: 2*agentBytes + 512<<10}, // the agent is stored twice: uploaded, and installed
			condition:  v1alpha1.ConditionInstalled, reason: "DiskFull", words: "C:", next: retriesAt},
		{fault: winhost.FailServiceStart, step: fake.KindExec, timeout: timeouts.ServiceStartTimeout,
			condition: v1alpha1.ConditionInstalled, reason: "ServiceFailed", words: "containerd", next: retriesAt},
		{fault: winhost.BashDefaultShell, step: winhost.KindCommand, timeout: remote.DefaultHelloTimeout,
			condition: v1alpha1.ConditionReachable, reason: "ShellUnsupported", words: "neither cmd.exe nor PowerShell",
			next: "DefaultShell"},
		{fault: winhost.AgentBlocked, step: winhost.KindCommand, timeout: remote.DefaultHelloTimeout,
			condition: v1alpha1.ConditionReachable, reason: "AgentBlocked", words: "wicd.exe is blocked", next: "AppLocker"},
		{fault: winhost.SlowLink, parameters: &winhost.Parameters{Latency: 300 * time.Millisecond, BytesPerSecond: 2 << 20},
			meanwhile: connects},
		{fault: winhost.SlowBanner, meanwhile: connects},
		{fault: winhost.SlowLogin, meanwhile: connects},
		{fault: winhost.SlowSession},
		{fault: winhost.RenameRefused},
		{fault: winhost.CutAfterBytes},
		{fault: winhost.VerbKilledWithSession},
		{fault: winhost.VerbSurvivesSession},
		{fault: winhost.NoiseBeforeOutput},
		{fault: winhost.PowerShellDefaultShell},
		{fault: winhost.DelayShutdown},
	}
}

// L-20
func TestFaults_EachReportedIsolatedAndRecoverable(t *testing.T) {
	built, err := os.Stat(agentPath)
	requireNoError(t, err)
	cases := faultCases(built.Size())
	for _, fault := range winhost.AllFaults() {
		if !slices.ContainsFunc(cases, func(c faultCase) bool { return c.fault == fault }) {
			t.Errorf("no case for the fault %s", fault)
		}
	}
	controlPlane, clock := parallelCluster(t), clocktesting.NewFakeClock(time.Now())
	hosts := []testenv.HostOptions{{Name: "healthy"}}
	for _, c := range cases {
		hosts = append(hosts, testenv.HostOptions{Name: c.hostName()})
	}
	r := newInstalledRig(t, testenv.Options{Cluster: controlPlane, Hosts: hosts, Clock: clock})
	restore := map[string]func(){}
	for _, c := range cases {
		restore[c.hostName()] = c.injectFault(r.Host(c.hostName()))
	}
	run(t, r)
	list(t, r)

	for _, c := range cases {
		if c.meanwhile != "" {
			waitForConnection(t, r, c.hostName())
		}
	}
	clock.Step(time.Second) // the status names the slow step
	for _, c := range cases {
		if c.meanwhile != "" {
			t.Run(c.hostName()+" says what is waited for", func(t *testing.T) { waitForNextAction(t, r, c.hostName(), c.meanwhile) })
		}
	}
	start := clock.Now()
	pumpAtRest(t, clock, virtualtime.Programs(r.Cluster().PID()))
	for _, c := range cases {
		if c.reason != "" {
			t.Run(c.hostName()+" is named in time", func(t *testing.T) { c.checkReported(t, r, start) })
		}
	}
	t.Run("hosts without a fault, and those that only lose time, become Ready", func(t *testing.T) {
		waitUntilReady(t, r, "healthy")
		for _, c := range cases {
			if c.reason == "" || c.heals {
				waitUntilReady(t, r, c.hostName())
			}
		}
		if attempts := r.Host("healthy").Machine().Journal().Count(fake.KindConnection); attempts > 2 {
			t.Errorf("the healthy host needed %d connections", attempts)
		}
	})
	for _, c := range cases {
		restore[c.hostName()]()
	}
	for _, c := range cases {
		t.Run(c.hostName()+" becomes Ready when it is mended", func(t *testing.T) { waitUntilReady(t, r, c.hostName()) })
	}
}

// waitForConnection waits until the operator connects to a host.
func waitForConnection(t *testing.T, r *testenv.Environment, name string) {
	t.Helper()
	journal := r.Host(name).Machine().Journal()
	requireNoError(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		return journal.Count(fake.KindConnection) > 0, nil
	}))
}

// waitForNextAction waits until the next action in the status of a host contains the text.
func waitForNextAction(t *testing.T, r *testenv.Environment, name, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	err := r.WaitForInstance(ctx, r.Host(name), "to say: "+text, func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && strings.Contains(i.Status.NextAction, text)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkReported waits for the reason and checks when and with which message the reason was reported.
func (c faultCase) checkReported(t *testing.T, r *testenv.Environment, start time.Time) {
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	var instance *v1alpha1.WindowsInstance
	err := r.WaitForInstance(ctx, r.Host(c.hostName()), "to say "+c.reason, func(i *v1alpha1.WindowsInstance) bool {
		instance = i
		return i != nil && i.Status.Summary == c.reason
	})
	if err != nil {
		t.Fatal(err)
	}
	explanation := testenv.Explain(instance)
	t.Logf("an administrator reads:\n%s", explanation)
	condition := meta.FindStatusCondition(instance.Status.Conditions, c.condition)
	if condition == nil || condition.Reason != c.reason {
		t.Fatalf("condition %s does not have the reason %s", c.condition, c.reason)
	}
	if !strings.Contains(condition.Message, c.words) {
		t.Errorf("the message does not speak of %q", c.words)
	}
	if !strings.Contains(instance.Status.NextAction, c.next) {
		t.Errorf("what happens next does not speak of %q", c.next)
	}
	// Times in a status have a resolution of one second, the first retry comes after two seconds, and a busy
	// machine is slow. Without a limit, the report would take minutes.
	const slack = 20 * time.Second
	reported := condition.LastTransitionTime.Time
	for _, entry := range r.Host(c.hostName()).Machine().Journal().Entries(func(e fake.Entry) bool {
		return e.Kind == c.step
	}) {
		if entry.Time.Before(reported.Add(time.Second)) {
			start = entry.Time
		}
	}
	if elapsed := reported.Sub(start); elapsed > c.timeout+slack {
		t.Errorf("it was told %s after the step began; the limit is %s", elapsed, c.timeout)
	}
}
