package clusterconfig

import (
	"strings"
	"testing"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The operator reads the configuration of the Linux workers through the API, and does not request it from a machine
// config server. An earlier read must not replace a configuration that no longer exists. R-100, D-3
func TestReconcile_UnusableRenderedConfigReportedNotFollowed(t *testing.T) {
	rendered := &machineconfigv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "rendered-worker-1"}}
	for name, test := range map[string]struct {
		mutate  func(*fixture) error
		message string
	}{
		"one that is missing": {func(a *fixture) error {
			return a.client.Delete(a.t.Context(), rendered.DeepCopy())
		}, "does not exist"},
		"one that is no Ignition": {func(a *fixture) error {
			broken := rendered.DeepCopy()
			broken.Spec.Config.Raw = []byte(`{"ignition":{"version":"4.0.0"}}`)
			return a.client.Patch(a.t.Context(), broken, client.Merge)
		}, "spec.config"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newFixture(t)
			reporter := newTrial(t, newOperatorCondition())
			a.Report = reporter.Reporter
			if _, err := a.Current(); err != nil {
				t.Fatal(err)
			}
			a.requireNoError(test.mutate(a))
			a.readAndExpect(1)
			_, err := a.Current()
			if err == nil || !strings.Contains(err.Error(), "MachineConfig rendered-worker-1") ||
				!strings.Contains(err.Error(), test.message) {
				t.Errorf("nodes follow what was read before, or the error does not name the object: %v", err)
			}
			expectEvents(t, drainEvents(reporter),
				"Warning ClusterConfigurationInvalid The cluster's configuration cannot be used: MachineConfig rendered-worker-1")
		})
	}
}

func drainEvents(r *trial) (events []string) {
	for len(r.recorder.Events) > 0 {
		events = append(events, <-r.recorder.Events)
	}
	return events
}
