package monitoring_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventsByObject holds warnings by the kind and name of their object.
type eventsByObject map[string][]string

func (e eventsByObject) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	if object, ok := regarding.(client.Object); ok {
		key := fmt.Sprintf("%T %s", regarding, object.GetName())
		e[key] = append(e[key], reason+" "+fmt.Sprintf(note, args...))
	}
}

//
func TestReconcile_UnmonitoredNodeReported(t *testing.T) {
	for name, c := range map[string]struct{ ip, message string }{
		"one without an address":         {"", "NodeNotMonitored Node win-odd is not monitored: it reports no usable IPv4 address of type InternalIP."},
		"one with another one's address": {"10.0.0.1", "NodeNotMonitored Node win-odd is not monitored: Node win-a, which is older, has its address 10.0.0.1."},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			events := eventsByObject{}
			f.Events = events
			f.createNode("win-a", "10.0.0.1")
			f.createNode("win-odd", c.ip)
			f.reconcileAll()
			f.reconcileAll()
			want := eventsByObject{"*v1.Node win-odd": {c.message}, "*v1alpha1.WindowsInstance win-odd": {c.message}}
			if !maps.EqualFunc(events, want, slices.Equal) {
				t.Errorf("it is said %q, want %q", events, want)
			}
			if got := f.listedAddresses(); !slices.Equal(got, []string{"win-a 10.0.0.1"}) || f.getServiceMonitor() == nil {
				t.Errorf("%v are listed", got)
			}
		})
	}
}
