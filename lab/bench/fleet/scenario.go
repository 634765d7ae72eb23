package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/payload"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// scenarioFunc triggers an event in the fleet. It returns when hosts reached the desired state, or the duration if
// arrivals do not apply.
type scenarioFunc func(context.Context, counts) (arrivals []float64, seconds float64, err error)

// measureScenario measures the cost of a scenario.
func (l *lab) measureScenario(ctx context.Context, scenario Scenario) (Phase, error) {
	trigger, known := map[Scenario]scenarioFunc{
		Join: l.measureJoin, Idle: l.measureIdle, Restart: l.measureRestart, Setting: l.measureSetting, Rotation: l.measureRotation,
		SamePrograms: l.measureSamePrograms, Upgrade: l.measureUpgrade,
	}[scenario]
	if !known {
		return Phase{}, fmt.Errorf("there is no such scenario; there are %v", AllScenarios())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.Timeout+l.IdleDuration, fmt.Errorf("it took longer than %s", l.Timeout))
	defer cancel()
	before, err := l.readCounts()
	if err != nil {
		return Phase{}, err
	}
	arrivals, seconds, err := trigger(ctx, before)
	if err != nil {
		return Phase{}, err
	}
	if scenario != Idle { // which ends by time
		if _, err := l.awaitIdle(ctx); err != nil {
			return Phase{}, err
		}
	}
	phase, err := l.phaseSince(before, scenario)
	if err != nil {
		return Phase{}, err
	}
	if scenario == Restart { // of a new process
		phase.CPU.Operator, err = processorTime(l.operator.PID())
	}
	if err == nil && l.operator != nil {
		phase.Memory, err = residentMemory(l.operator.PID())
	}
	if err == nil && l.operator != nil {
		phase.ReconcileTime, err = l.reconcileTime(ctx)
	}
	if err == nil && scenario == Join {
		for _, host := range l.env.Hosts() {
			phase.TransferSeconds = max(phase.TransferSeconds, transferSeconds(host.Machine().Journal().Entries(nil)))
		}
		err = phase.checkPlausible(l.Hosts)
	}
	if phase.Arrivals, phase.Seconds = arrivals, seconds; len(arrivals) > 0 {
		phase.Seconds = arrivals[len(arrivals)-1]
	}
	return phase, err
}

// checkPlausible rejects implausible figures of a join: a counter that misses all events would keep each budget.
func (p Phase) checkPlausible(hosts int) error {
	var faults []error
	for what, n := range map[string]int{
		"SSH connections": p.All.Connections, "execs": p.All.Execs, "SFTP sessions": p.All.SFTPSessions, "process starts": p.All.Processes,
		"service operations": p.All.Services, "API reads": p.Reads, "API writes": p.Writes,
	} {
		if n < hosts {
			faults = append(faults, fmt.Errorf("%d %s were counted for %d hosts that became Ready: the measurement is broken", n, what, hosts))
		}
	}
	return errors.Join(faults...)
}

// formatSummary returns the cost of a scenario in one line.
func (p Phase) formatSummary(hosts int) string {
	s := fmt.Sprintf("%s: %.1f s; per host %.2f reads, %.2f writes, CPU of operator %.0f ms, control plane %.0f ms, hosts %.0f ms", p.Scenario,
		p.Seconds, float64(p.Reads)/float64(hosts), float64(p.Writes)/float64(hosts), 1000*p.CPU.Operator/float64(hosts),
		1000*p.CPU.ControlPlane/float64(hosts), 1000*p.CPU.Hosts/float64(hosts))
	if p.Memory != nil {
		s += fmt.Sprintf("; memory %d MiB, at most %d MiB", p.Memory.Resident>>20, p.Memory.Peak>>20)
	}
	if p.ReconcileTime > 0 {
		s += fmt.Sprintf("; 99 of 100 reconciles within %g s", p.ReconcileTime)
	}
	return s
}

func (l *lab) measureJoin(ctx context.Context, _ counts) ([]float64, float64, error) {
	return l.awaitInstances(ctx, "all hosts to be Ready", func(ctx context.Context) error { return l.env.ListHosts(ctx) }, testenv.IsReady)
}

func (l *lab) measureIdle(ctx context.Context, _ counts) ([]float64, float64, error) {
	timer := time.NewTimer(l.IdleDuration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, l.IdleDuration.Seconds(), l.checkRunning()
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
}

// measureRestart stops the operator, as a rollout or a drain of its node does, and starts another.
func (l *lab) measureRestart(ctx context.Context, _ counts) ([]float64, float64, error) {
	l.operator.Stop()
	start := time.Now()
	next, err := l.operator.StartAgain()
	if err != nil {
		return nil, 0, err
	}
	l.operator = next
	last, err := l.awaitIdle(ctx)
	return nil, last.Sub(start).Seconds(), err
}

// measureSetting configures a mirror for the images of a registry, which containerd reads again for each image.
func (l *lab) measureSetting(ctx context.Context, _ counts) ([]float64, float64, error) {
	return l.awaitNewSpec(ctx, "all hosts to have the mirror", func(ctx context.Context) error {
		return l.env.SetDigestMirrors(ctx, configv1.ImageDigestMirrors{
			Source: "quay.io/team", Mirrors: []configv1.ImageMirror{"mirror.example.com:5000/cache/team"},
		})
	})
}

// awaitNewSpec waits until all hosts have another NodeSpec than before.
func (l *lab) awaitNewSpec(ctx context.Context, what string, change func(context.Context) error) ([]float64, float64, error) {
	var instances v1alpha1.WindowsInstanceList
	if err := l.env.Client.List(ctx, &instances, client.InNamespace(l.env.Namespace())); err != nil {
		return nil, 0, fmt.Errorf("list the instances: %w", err)
	}
	before := map[string]string{}
	for i := range instances.Items {
		before[instances.Items[i].Name] = instances.Items[i].Status.SpecDigest
	}
	return l.awaitInstances(ctx, what, change, func(i *v1alpha1.WindowsInstance) bool {
		return testenv.IsReady(i) && i.Status.SpecDigest != before[i.Name]
	})
}

// measureRotation replaces the operator's key and keeps the previous key, which hosts still accept, so that the
// operator can install the new key.
func (l *lab) measureRotation(ctx context.Context, _ counts) ([]float64, float64, error) {
	return l.awaitInstances(ctx, "all hosts to have the other key",
		func(ctx context.Context) error { return l.env.RotateKey(ctx, true) },
		func(i *v1alpha1.WindowsInstance) bool {
			return testenv.IsReady(i) && i.Status.PublicKeyHash == l.env.KeyHash()
		})
}

// measureSamePrograms replaces the operator by another version without changes for hosts.
func (l *lab) measureSamePrograms(ctx context.Context, _ counts) ([]float64, float64, error) {
	return l.replaceOperator(ctx, "1.0.0-same", l.payloadDirectory())
}

// measureUpgrade replaces the operator by another version, with another kubelet and another kube-proxy, like a patch
// release of Kubernetes.
func (l *lab) measureUpgrade(ctx context.Context, _ counts) ([]float64, float64, error) {
	const version = "1.0.1-upgrade"
	dir := filepath.Join(l.Dir, "payload-"+version)
	_, err := labpayload.Generate(dir, l.Agent, version, labpayload.Options{
		SizePercent: l.SizePercent, Versions: map[string]string{"kubelet": "v1.36.4", "kube-proxy": "v1.36.4"},
		Earlier: []*payload.Payload{l.payload},
	})
	if err != nil {
		return nil, 0, err
	}
	if err := l.allowUnavailable(ctx); err != nil {
		return nil, 0, err
	}
	return l.replaceOperator(ctx, version, dir)
}

func (l *lab) payloadDirectory() string { return filepath.Join(l.Dir, "payload") }

// replaceOperator stops the operator and starts another version in this process, because the executable has only one
// version.
func (l *lab) replaceOperator(ctx context.Context, version, dir string) ([]float64, float64, error) {
	switch {
	case l.operator != nil:
		l.operator.Stop()
		l.operator = nil
	case l.inside != nil:
		if err := l.inside.Stop(); err != nil {
			return nil, 0, err
		}
	default:
		return nil, 0, errors.New("there is no operator to take over from")
	}
	return l.awaitInstances(ctx, "all nodes to have the version "+version, func(context.Context) error {
		return l.runInside(testenv.Release{Version: version, PayloadDirectory: dir})
	}, func(i *v1alpha1.WindowsInstance) bool { return testenv.IsReady(i) && i.Status.Version == version })
}

// allowUnavailable sets the number of nodes that may be unavailable at a time.
func (l *lab) allowUnavailable(ctx context.Context) error {
	policy := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: l.env.Namespace(), Name: v1alpha1.DisruptionPolicyName}}
	most := intstr.FromInt(l.MaxUnavailable)
	err := retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }, func() error {
		err := l.env.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy)
		if policy.Spec.MaxUnavailable = &most; apierrors.IsNotFound(err) {
			return l.env.Client.Create(ctx, policy)
		}
		if err != nil {
			return err
		}
		return l.env.Client.Update(ctx, policy)
	})
	if err != nil {
		return fmt.Errorf("let %d nodes be unavailable at a time: %w", l.MaxUnavailable, err)
	}
	return nil
}
