package dryrun

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

func TestForecaster_RemovedHostHasChanges(t *testing.T) {
	instance := &v1alpha1.WindowsInstance{Spec: v1alpha1.WindowsInstanceSpec{DesiredState: v1alpha1.DesiredStateRemoved}}
	forecast, err := Forecaster{}.Of(t.Context(), instance, nodespec.Cluster{}, sshkey.Key{})
	if err != nil || !forecast.Removed || !forecast.HasChanges() {
		t.Errorf("%+v, %v", forecast, err)
	}
	instance.Spec.DesiredState = v1alpha1.DesiredStateUnmanaged
	if forecast, err = (Forecaster{}).Of(t.Context(), instance, nodespec.Cluster{}, sshkey.Key{}); err != nil || forecast.HasChanges() {
		t.Errorf("of a host that is left alone: %+v, %v", forecast, err)
	}
}

func TestForecaster_MachineReplacedInsteadOfSteps(t *testing.T) {
	spec := nodespec.NodeSpec{}
	steps := []Step{{Name: "StopService kubelet", DisruptsPods: true}}
	for name, c := range map[string]struct {
		strategy v1alpha1.UpgradeStrategy
		version  string // of the operator that has configured the node
		steps    []Step
		applied  string
		replaced bool
	}{
		"of another version":                          {v1alpha1.UpgradeReplace, "1.0.0", steps, "", true},
		"of which the host is not to be what it was":  {v1alpha1.UpgradeReplace, "1.0.0", nil, "another", true},
		"not when that changes nothing on the host":   {v1alpha1.UpgradeReplace, "1.0.0", nil, spec.Digest(), false},
		"not when this version has configured it":     {v1alpha1.UpgradeReplace, "2.0.0", steps, "another", false},
		"not when its MachineSet says to do it there": {v1alpha1.UpgradeInPlace, "1.0.0", steps, "another", false},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &v1alpha1.WindowsInstance{Spec: v1alpha1.WindowsInstanceSpec{UpgradeStrategy: c.strategy,
				Source: v1alpha1.Source{Machine: &v1alpha1.MachineReference{Name: "windows-1"}}}}
			instance.Status.SpecDigest = c.applied
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationVersion: c.version}}}
			forecast := Forecast{Instance: "win-1", Steps: c.steps, FilesToSend: 3}
			f := Forecaster{Specs: desired.SpecBuilder{Version: "2.0.0"}}
			if got := f.isReplaced(scope.New(instance, &scope.Session{}, &hostjobs.Host{}, clock.RealClock{}), node, spec, &forecast); got != c.replaced || forecast.Replaced != c.replaced {
				t.Fatalf("%t: %+v", got, forecast)
			}
			if c.replaced && (len(forecast.Steps) > 0 || forecast.FilesToSend > 0 || !forecast.HasChanges() || forecast.Instance != "win-1" ||
				!strings.Contains(strings.Join(forecast.Notes, " "), "windows-1 is deleted and replaced")) {
				t.Errorf("%+v", forecast)
			}
		})
	}
}

func TestForecaster_ChangesBlockedOnUnsupportedHost(t *testing.T) {
	const refused, accepted = "10.0.20348.169", "10.0.20348.681"
	line := support.CurrentLine()
	served := nodespec.Cluster{Platform: "AWS", Version: line.Newest().OpenShift + ".3",
		Network: nodespec.ClusterNetwork{Type: "OVNKubernetes", HybridOverlay: true}}
	newer := served
	newer.Version = "99.0.0"
	for name, c := range map[string]struct {
		cluster nodespec.Cluster
		build   string
		change  func(*Forecaster, *corev1.Node)
		message string
	}{
		"not where it would be accepted":          {served, accepted, nil, ""},
		"on a cluster that is not served":         {newer, accepted, nil, "99.0.0"},
		"with a build of Windows that is refused": {served, refused, nil, "20348.169"},
		"not if a restart is requested, which an update of Windows needs": {served, refused, func(_ *Forecaster, n *corev1.Node) {
			n.Annotations[v1alpha1.AnnotationRebootRequired] = "true"
		}, ""},
		"not by the report of a kubelet that does not work": {served, refused, func(_ *Forecaster, n *corev1.Node) {
			n.Status.Conditions = nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}
			instance.Status.SpecDigest, instance.Status.NodeRef = "applied", &v1alpha1.NodeReference{Name: "win-1", UID: "1", Confirmed: true}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1", UID: "1", Annotations: map[string]string{v1alpha1.AnnotationVersion: "2.0.0", v1alpha1.AnnotationInstance: "win-1"}}}
			node.Status.NodeInfo.KernelVersion = c.build
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			f := Forecaster{Specs: desired.SpecBuilder{Version: "2.0.0"}, Line: line}
			if c.change != nil {
				c.change(&f, node)
			}
			s := scope.New(instance, &scope.Session{}, &hostjobs.Host{}, clock.RealClock{})
			s.Cluster = c.cluster
			forecast := Forecast{Steps: []Step{{Name: "StopService kubelet"}}}
			f.recordRefusal(s, node, &forecast)
			if (forecast.HeldBack != "") != (c.message != "") || !strings.Contains(forecast.HeldBack, c.message) || !forecast.HasChanges() {
				t.Errorf("held back is %q, want %q", forecast.HeldBack, c.message)
			}
		})
	}
}
