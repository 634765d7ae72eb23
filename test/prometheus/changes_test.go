package prometheus

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/nodecondition"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// badSetting makes a kubelet exit at once: the high threshold must be above the low threshold of 80.
var badSetting = map[string]any{"imageGCHighThresholdPercent": 70}

var statesOfChanges = []state{
	{
		name:       "a change that is stopped because a node has failed sets off one alert, which ends once others may go on",
		alertNames: []string{"WindowsUpgradeStopped"},
		begin: func(l lab) func() {
			l.setStopOnFailure(true)
			l.requireNoError(l.SetKubeletSettings(l.Context(), badSetting))
			return func() { l.setStopOnFailure(false) }
		},
		sign:  `wmco_disruptions_stopped{reason="StoppedOnFailure"} == 1`,
		quiet: 3 * minute, lasts: 6 * minute,
		alerts: func(l lab) []expectedAlert {
			l.checkFailedNodeNamed()
			return []expectedAlert{{map[string]string{"reason": "StoppedOnFailure"}, "names the failed node"}}
		},
	}, {
		name:       "a first node that has failed sets off one alert, which ends once the settings are right",
		alertNames: []string{"WindowsCanaryFailed"},
		begin: func(l lab) func() {
			l.requireNoError(l.SetKubeletSettings(l.Context(), badSetting))
			return func() { l.requireNoError(l.SetKubeletSettings(l.Context(), nil)) }
		},
		sign:  `wmco_disruptions_stopped{reason="CanaryFailed"} == 1`,
		quiet: 3 * minute, lasts: 6 * minute,
		alerts: func(l lab) []expectedAlert {
			l.checkFailedNodeNamed()
			return []expectedAlert{{map[string]string{"reason": "CanaryFailed"}, "names the node"}}
		},
	}, {
		name:       "a host that is changed again and again sets off one alert within an hour, which ends an hour after the last time",
		alertNames: []string{"WindowsHostDriftsRepeatedly"},
		begin:      func(l lab) func() { l.stopUntilAlert("instance-1"); return func() {} },
		sign:       `increase(wmco_agent_repairs_total[1h]) > 4`,
		alerts:     singleAlert("Node instance-1 ", map[string]string{"node": "instance-1"}),
		window:     62 * minute,
	}, {
		name:       "an agent that stays silent, and that the operator must not start, sets off one alert, which ends once it runs",
		alertNames: []string{"WindowsAgentSilent"},
		begin: func(l lab) func() {
			services := l.Host("instance-2").Machine().Host().Services
			l.setPaused("instance-2", true)
			l.requireNoError(services.Stop(l.Context(), nodespec.ServiceAgent))
			l.waitForConfiguration("instance-2", corev1.ConditionUnknown)
			return func() {
				l.requireNoError(services.Start(l.Context(), nodespec.ServiceAgent))
				l.waitForConfiguration("instance-2", corev1.ConditionTrue)
				l.setPaused("instance-2", false)
			}
		},
		sign:  `wmco_nodes_configuration{status="Unknown"} > 0`,
		quiet: 28 * minute, lasts: 31 * minute,
		alerts: singleAlert("The agents of 1 Windows nodes", map[string]string{"status": "Unknown"}),
	},
}

// checkFailedNodeNamed checks the statements in the descriptions of alerts about the policy's condition Stopped.
func (l lab) checkFailedNodeNamed() {
	l.Helper()
	stopped := meta.FindStatusCondition(l.getPolicy().Status.Conditions, v1alpha1.ConditionStopped)
	for _, name := range monitored {
		if failed := l.getInstance(name).Status.FailedChange; failed != nil && stopped != nil && strings.Contains(stopped.Message, name) {
			return
		}
	}
	l.Errorf("the policy does not name the node that has failed: %+v", stopped)
}

// stopUntilAlert stops a service of a host whenever it runs, until an alert fires. Prometheus' time passes as fast as
// the host's.
func (l lab) stopUntilAlert(name string) {
	l.Helper()
	services, begun := l.Host(name).Machine().Host().Services, l.fast.Now()
	l.advanceClockTo(begun)
	l.waitUntil("an alert about repairs of "+name, func(ctx context.Context) (bool, error) {
		l.fast.Step(10 * time.Second)
		now := l.fast.Now()
		if now.Sub(begun) > time.Hour {
			l.Fatalf("no alert has fired within an hour")
		}
		l.advanceClockTo(now)
		found, err := services.Query(ctx, nodespec.ServiceCSIProxy)
		if err != nil {
			return false, err
		}
		if len(found) == 1 && found[0].State == host.ServiceRunning {
			if err := services.Stop(ctx, nodespec.ServiceCSIProxy); err != nil {
				return false, err
			}
		}
		firing, err := l.firingAlerts(ctx)
		return len(firing) > 0, err
	})
}

// waitForConfiguration advances the clock of hosts and operator until the condition WindowsConfiguration of a Node
// has a status.
func (l lab) waitForConfiguration(name string, status corev1.ConditionStatus) {
	l.Helper()
	l.waitUntil("WindowsConfiguration of "+name+" to be "+string(status), func(ctx context.Context) (bool, error) {
		l.fast.Step(10 * time.Second)
		node := &corev1.Node{}
		err := l.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		condition := nodecondition.Of(node)
		return condition != nil && condition.Status == status, err
	})
}

// getPolicy returns the WindowsDisruptionPolicy.
func (l lab) getPolicy() *v1alpha1.WindowsDisruptionPolicy {
	l.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{}
	l.requireNoError(l.Client.Get(l.Context(), client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}, p))
	return p
}

// setStopOnFailure sets the field of the WindowsDisruptionPolicy.
func (l lab) setStopOnFailure(stop bool) {
	l.Helper()
	p := &v1alpha1.WindowsDisruptionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}}
	l.requireNoError(client.IgnoreAlreadyExists(l.Client.Create(l.Context(), p)))
	before := p.DeepCopy()
	before.Spec.StopOnFailure, p.Spec.StopOnFailure = !stop, stop
	l.requireNoError(l.Client.Patch(l.Context(), p, client.MergeFrom(before)))
}
