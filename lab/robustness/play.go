package robustness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/faultproxy"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// ending ends an action with a duration.
type ending struct {
	due time.Time
	do  func(ctx context.Context) error
}

// runActions runs the actions in order.
func (l *lab) runActions(ctx context.Context, actions []Action) error {
	for _, a := range actions {
		if err := l.waitPause(ctx, a.Pause); err != nil {
			return err
		}
		if err := l.recordRevision(ctx); err != nil {
			return err
		}
		end, err := l.runAction(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if end != nil {
			l.endings = append(l.endings, ending{time.Now().Add(a.For), end})
		}
	}
	return nil
}

// tick is the interval of checks for due endings.
const tick = 100 * time.Millisecond

// waitPause waits, and runs due endings meanwhile.
func (l *lab) waitPause(ctx context.Context, pause time.Duration) error {
	for until := time.Now().Add(pause); ; {
		if err := l.endDueActions(ctx, func(e ending) bool { return !time.Now().Before(e.due) }); err != nil {
			return err
		}
		if err := l.reapOperators(); err != nil {
			return err
		}
		left := time.Until(until)
		if left <= 0 {
			return ctx.Err()
		}
		select {
		case <-time.After(min(left, tick)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *lab) endDueActions(ctx context.Context, due func(ending) bool) error {
	endings := l.endings
	l.endings = nil
	for _, e := range endings {
		if !due(e) {
			l.endings = append(l.endings, e)
			continue
		}
		if err := e.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// executor runs an action. It returns the function that ends the action, nil for an action without duration.
type executor func(l *lab, ctx context.Context, a Action) (end func(ctx context.Context) error, err error)

// runAction runs an action. An action does nothing if it makes no sense now because the shrunk list lacks earlier
// actions.
func (l *lab) runAction(ctx context.Context, a Action) (func(context.Context) error, error) {
	do, known := executors[a.Kind]
	if !known {
		return nil, fmt.Errorf("nobody knows how to do %s", a.Kind)
	}
	l.options.Progress("%s", a)
	return do(l, ctx, a)
}

var executors = map[Kind]executor{
	ListHost: (*lab).changeListedHosts, UnlistHost: (*lab).unlistHost, MaxUnavailable: (*lab).setMaxUnavailable, PausePolicy: (*lab).pausePolicy,
	WrongEntry: (*lab).wrongEntry, InvalidEntry: (*lab).invalidEntry, PauseHost: (*lab).pauseHost,
	Reboot: (*lab).requestReboot, Retry: (*lab).requestRetry, DeleteInstance: (*lab).deleteInstance, DeleteNode: (*lab).deleteNode,
	Cordon: (*lab).setCordon, Uncordon: (*lab).setCordon, Setting: (*lab).setMaxPods, RotateKey: (*lab).rotateKey,
	Release: (*lab).installRelease, Scale: (*lab).scaleMachines, KeepPods: (*lab).keepPods, Await: (*lab).awaitDesiredState,

	KillOperator: (*lab).killOperator, StopOperator: (*lab).stopOperator, StaleStart: (*lab).staleStart, SecondOperator: (*lab).startSecondOperator, RestartAPI: (*lab).restartAPI,
	CutAPI: injectAPIFault(func(Action) faultproxy.Fault { return faultproxy.Fault{Refuse: true} }),
	DelayWatches: injectAPIFault(func(a Action) faultproxy.Fault {
		return faultproxy.Fault{Delay: time.Duration(a.Number) * time.Millisecond}
	}),
	HoldWatches:  injectAPIFault(func(Action) faultproxy.Fault { return faultproxy.Fault{Hold: true} }),
	FailRequests: injectAPIFault(func(a Action) faultproxy.Fault { return faultproxy.Fault{Fail: true, Every: a.Number} }),
	Conflicts:    injectAPIFault(func(a Action) faultproxy.Fault { return faultproxy.Fault{Conflict: true, Every: a.Number} }),
	LoseAnswers:  injectAPIFault(func(a Action) faultproxy.Fault { return faultproxy.Fault{LoseAnswers: true, Every: a.Number} }),
	BreakWatches: func(l *lab, _ context.Context, a Action) (func(context.Context) error, error) {
		l.proxy.BreakWatches(a.Resource)
		return nil, nil
	},
	HostFault: (*lab).hostFault, PowerOff: (*lab).powerOff, CrashService: (*lab).crashService,
	WrongClock: (*lab).wrongClock, MoveHost: (*lab).moveHost, Reinstall: (*lab).reinstallHost, ForgeRequest: (*lab).forgeRequest,
}

// injectAPIFault injects a fault between operator and API server.
func injectAPIFault(fault func(Action) faultproxy.Fault) executor {
	return func(l *lab, _ context.Context, a Action) (func(context.Context) error, error) {
		remove := l.proxy.Add(a.Resource, fault(a))
		return func(context.Context) error { remove(); return nil }, nil
	}
}

func (l *lab) restartAPI(ctx context.Context, _ Action) (func(context.Context) error, error) {
	return nil, l.Cluster().Restart(ctx)
}

// actionHost returns the host of an action; nil if it does not exist now.
func (l *lab) actionHost(name string) *testenv.Host {
	if name != youngestMachine {
		return l.Host(name)
	}
	for _, h := range slices.Backward(l.MachineHosts()) {
		if !l.IsGone(h) {
			return h
		}
	}
	return nil
}

func (l *lab) hostFault(_ context.Context, a Action) (func(context.Context) error, error) {
	fault, err := winhost.ParseFault(a.Text)
	if err != nil {
		return nil, err
	}
	h := l.actionHost(a.Host)
	if h == nil || fault == winhost.ChangedHostKey && a.Host == youngestMachine { // a VM that was replaced is another Machine
		return nil, nil
	}
	parameters := fault.Example()
	parameters.Bytes = int64(a.Number)
	if fault == winhost.ChangedHostKey {
		// An operator that first connects meanwhile pins that key.
		l.hosts[a.Host].newKey, l.hosts[a.Host].keyUnknown = true, true
	}
	restore := h.Inject(fault, parameters)
	return func(context.Context) error { restore(); return nil }, nil
}

func (l *lab) powerOff(_ context.Context, a Action) (func(context.Context) error, error) {
	h := l.actionHost(a.Host)
	if h == nil {
		return nil, nil
	}
	if record := l.hosts[a.Host]; record != nil {
		record.poweredOff = true
	}
	h.Machine().PowerOff()
	return func(ctx context.Context) error {
		if a.Host == youngestMachine && l.IsGone(h) {
			return nil
		}
		return h.Machine().Boot(ctx)
	}, nil
}

func (l *lab) crashService(_ context.Context, a Action) (func(context.Context) error, error) {
	if h := l.actionHost(a.Host); h != nil {
		_ = h.Machine().CrashService(a.Text, 1) // a stopped service cannot crash
	}
	return nil, nil
}

func (l *lab) wrongClock(_ context.Context, a Action) (func(context.Context) error, error) {
	h := l.actionHost(a.Host)
	if h == nil {
		return nil, nil
	}
	h.Machine().SetClockOffset(time.Duration(a.Number) * time.Second)
	return func(context.Context) error {
		h.Machine().SetClockOffset(0)
		return nil
	}, nil
}

func (l *lab) moveHost(ctx context.Context, a Action) (func(context.Context) error, error) {
	l.moved++
	address, record := fmt.Sprintf("10.9.77.%d", l.moved), l.hosts[a.Host]
	record.Addresses = append(record.Addresses, address)
	return nil, l.MoveHost(ctx, l.Host(a.Host), address)
}

// reinstallHost reinstalls a host. The administrator accepts the new key when the operator requests it.
func (l *lab) reinstallHost(ctx context.Context, a Action) (func(context.Context) error, error) {
	h := l.Host(a.Host)
	if err := l.recordKubeletKeys(h); err != nil {
		return nil, err
	}
	if err := l.ReinstallHost(ctx, h); err != nil {
		return nil, err
	}
	l.hosts[a.Host].newKey = true
	return nil, l.recordHost(h)
}

// patchInstance merges a patch into the instance of a host, if there is one.
func (l *lab) patchInstance(ctx context.Context, host, patch string) error {
	instance, err := l.instanceOf(ctx, host)
	if err != nil || instance == nil {
		return err
	}
	return client.IgnoreNotFound(l.Client.Patch(ctx, instance, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (l *lab) patchPolicy(ctx context.Context, patch string) error {
	policy := &v1alpha1.WindowsDisruptionPolicy{}
	policy.Namespace, policy.Name = l.Namespace(), v1alpha1.DisruptionPolicyName
	return l.Client.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// annotationPatch returns a patch that sets an annotation.
func annotationPatch(name, value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)
}
