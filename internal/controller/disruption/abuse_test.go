package disruption_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	disruptionpolicy "github.com/windows-machine-config/wmco/internal/policy/disruption"
)

func pausePolicy(s *v1alpha1.WindowsDisruptionPolicySpec) { s.Paused = true }

func TestGate_RepairSlotNotUsableForUpgrade(t *testing.T) {
	shared := newWorld(t)
	t.Run("a repair in a pause does not become an upgrade, and can be ended", func(t *testing.T) {
		w := shared.forSubtest(t)
		w.editPolicy(pausePolicy)
		host := w.createHost("byoh-1", before)
		w.reportNode(host.Name, false, "v1.35.1")
		first := w.start("first", false)
		if decision := first.acquireSlot(host, v1alpha1.CauseRepair); !decision.Allowed {
			t.Fatalf("the repair: %+v", decision)
		}
		w.reportNode(host.Name, true, "v1.35.1")
		second := w.start("second", false)
		for _, p := range []*process{first, second} {
			if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); decision.Allowed ||
				decision.Reason != v1alpha1.ReasonDisruptionsPaused {
				t.Errorf("the upgrade: %+v", decision)
			}
		}
		if entry := w.getPolicy().Status.Disruptions[0]; entry.Cause != v1alpha1.CauseRepair || entry.HolderIdentity != "first" {
			t.Errorf("it is %+v", entry)
		}
		if decision := second.acquireSlot(host, v1alpha1.CauseRepair); !decision.Allowed {
			t.Errorf("the repair goes on with the second: %+v", decision)
		}
		second.releaseSlot(host)
		if listed := w.disruptedInstances(); len(listed) != 0 {
			t.Errorf("%q are listed", listed)
		}
	})
	t.Run("a restart does not become an upgrade", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		p := w.start("one", false)
		p.acquireSlot(host, v1alpha1.CauseReboot)
		w.editPolicy(pausePolicy)
		if decision := p.acquireSlot(host, v1alpha1.CauseUpgrade); decision.Allowed {
			t.Error("it does")
		}
	})
	t.Run("an upgrade that is asked for as a restart in between goes on to its end", func(t *testing.T) {
		w := shared.forSubtest(t)
		host := w.createHost("byoh-1", before)
		p := w.start("one", false)
		p.acquireSlot(host, v1alpha1.CauseUpgrade)
		w.editPolicy(pausePolicy)
		for _, cause := range []v1alpha1.DisruptionCause{v1alpha1.CauseReboot, v1alpha1.CauseUpgrade,
			v1alpha1.CauseConfiguration, v1alpha1.CauseUpgrade} {
			if decision := p.acquireSlot(host, cause); !decision.Allowed {
				t.Errorf("%s: %+v", cause, decision)
			}
		}
		if entry := w.getPolicy().Status.Disruptions[0]; entry.Cause != v1alpha1.CauseUpgrade {
			t.Errorf("it is %+v", entry)
		}
	})
}

// Otherwise the missing Machine would not be counted.
func TestGate_ReplacedMachineGetsNoOtherSlot(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	set := w.createMachineSet("workers", 2)
	old := w.createMachine(set, "machine-1", before)
	w.createMachine(set, "machine-2", before)
	p := w.start("one", false)
	if decision := p.acquireReplacement(old); !decision.Allowed {
		t.Fatalf("%+v", decision)
	}
	w.deleteMachine(old)
	for _, cause := range []v1alpha1.DisruptionCause{v1alpha1.CauseRepair, v1alpha1.CauseRemoval,
		v1alpha1.CauseConfiguration} {
		if decision := p.acquireSlot(old, cause); decision.Allowed || decision.Reason != v1alpha1.ReasonMachineDeleting {
			t.Errorf("%s: %+v", cause, decision)
		}
	}
	if entry := w.getPolicy().Status.Disruptions[0]; entry.Machine != "machine-1" || entry.Cause != v1alpha1.CauseUpgrade {
		t.Errorf("it is %+v", entry)
	}
}

// A kubelet may write annotations on its own Node.
func TestCanary_VersionAnnotationOfNodeNotTrusted(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) { s.CanarySoak = &metav1.Duration{Duration: time.Hour} })
	attacker, first, second := w.createHost("byoh-1", before), w.createHost("byoh-2", before), w.createHost("byoh-3", before)
	w.patchNode(attacker.Name, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationVersion] = version })
	p := w.start("one", false)
	if decision := p.acquireSlot(first, v1alpha1.CauseUpgrade); !decision.Allowed {
		t.Errorf("it is taken for the first node with the version: %+v", decision)
	}
	p.releaseSlot(first)
	w.patchNode(first.Name, func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationVersion] = version })
	first.Status.Version = version
	w.requireNoError(w.admin.Status().Update(t.Context(), first))
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if decision := p.acquireSlot(second, v1alpha1.CauseUpgrade); decision.Reason != v1alpha1.ReasonCanarySoaking {
		t.Errorf("the first node is not waited for: %+v", decision)
	}
}

// Every policy that the API server accepts must be readable. Otherwise the operator could not list policies and
// would not start.
func TestPolicy_AcceptedPolicyIsReadable(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	w.editPolicy(func(*v1alpha1.WindowsDisruptionPolicySpec) {})
	window := func(field, value string) string {
		fields := map[string]string{"schedule": `"0 2 * * SAT"`, "duration": `"4h"`}
		fields[field] = value
		return fmt.Sprintf(`"maintenanceWindows":[{"schedule":%s,"duration":%s,"timeZone":%s}]`, fields["schedule"], fields["duration"], cmp.Or(fields["timeZone"], `""`))
	}
	for spec, accepted := range map[string]bool{
		`"failureDeadline":"soon"`:                     false,
		`"failureDeadline":"1d"`:                       false,
		`"failureDeadline":"-1m"`:                      false,
		`"failureDeadline":""`:                         false,
		`"failureDeadline":"99999999999h"`:             false,
		`"failureDeadline":"99999h"`:                   true,
		`"failureDeadline":"0s"`:                       true,
		`"failureDeadline":"1h30m0s"`:                  true,
		`"failureDeadline":"1.5s"`:                     true,
		`"drainTimeout":"ten minutes"`:                 false,
		`"drainTimeout":"0s"`:                          true,
		`"canarySoak":"P1D"`:                           false,
		`"canarySoak":"0s"`:                            true,
		`"maxUnavailable":0`:                           false,
		`"maxUnavailable":-1`:                          false,
		`"maxUnavailable":99999999999`:                 false,
		`"maxUnavailable":1e30`:                        false,
		`"maxUnavailable":1.5`:                         false,
		`"maxUnavailable":"0%"`:                        false,
		`"maxUnavailable":"99999999999"`:               false,
		`"maxUnavailable":"9999999999"`:                true,
		`"maxUnavailable":"100%"`:                      true,
		`"maxUnavailable":2147483647`:                  true,
		`"pools":[{"name":"x","maxUnavailable":0}]`:    false,
		`"pools":[{"name":"x"}]`:                       true,
		`"pools":[{"name":"Machines"}]`:                true,
		`"pools":[{"name":"Hosts"},{"name":"Hosts"}]`:  false,
		`"upgradeStrategy":"Recreate"`:                 false,
		`"hostPoolLabel":"a b"`:                        true,
		window("duration", `"forever"`):                false,
		window("duration", `"99999h"`):                 true,
		window("duration", `"0s"`):                     true,
		window("schedule", `"TZ= * * * * *"`):          true,
		window("schedule", `"* * 31 2 *"`):             true,
		window("schedule", `"@every 1ns"`):             true,
		window("timeZone", `"../../../etc/localtime"`): true,
		window("timeZone", `"Mars/Phobos"`):            true,
	} {
		t.Run(spec, func(t *testing.T) {
			raw := &unstructured.Unstructured{}
			raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WindowsDisruptionPolicy"))
			raw.SetNamespace(namespace)
			raw.SetName(v1alpha1.DisruptionPolicyName)
			body := []byte(`{"spec":null}`)
			w.requireNoError(w.admin.Patch(t.Context(), raw, client.RawPatch("application/merge-patch+json", body)))
			err := w.admin.Patch(t.Context(), raw, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{`+spec+`}}`)))
			if (err == nil) != accepted || err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("the API server says %v", err)
			}
			if err != nil {
				return
			}
			read := &v1alpha1.WindowsDisruptionPolicy{}
			if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(raw), read); err != nil {
				t.Fatalf("it cannot be read: %v", err)
			}
			settings, err := disruptionpolicy.Parse(read.Spec)
			disruptionpolicy.Allow(disruptionpolicy.NodePool{}, disruptionpolicy.Request{Cause: v1alpha1.CauseUpgrade}, settings, w.clock.Now())
			t.Logf("%v", err)
		})
	}
}

func TestPolicy_ManyFaultsDoNotBlockRepair(t *testing.T) {
	w := newWorld(t).forSubtest(t)
	w.editPolicy(func(s *v1alpha1.WindowsDisruptionPolicySpec) {
		for i := range 100 {
			s.Pools = append(s.Pools, v1alpha1.DisruptionPool{Name: fmt.Sprintf("%03d%s", i, strings.Repeat("x", 267))})
		}
	})
	host := w.createHost("byoh-1", before)
	w.reportNode(host.Name, false, "v1.35.1")
	p := w.start("one", false)
	if decision := p.acquireSlot(host, v1alpha1.CauseRepair); !decision.Allowed {
		t.Errorf("%+v", decision)
	}
	p.reconcile()
	if valid := w.policyCondition(v1alpha1.ConditionValid); valid.Reason != v1alpha1.ReasonDisruptionPolicyInvalid ||
		!strings.Contains(valid.Message, "97 more") {
		t.Errorf("%+v", valid)
	}
}
