package test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/monitoring"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// scraped records the nodes in the EndpointSlices of the exporters, as reported by a watch.
type scraped struct {
	mu     sync.Mutex
	slices map[string][]string
	// seen contains all observed states, each as node names separated by spaces.
	seen []string
}

// followSlices watches the EndpointSlices until the test ends.
func followSlices(t *testing.T, r *testenv.Environment) *scraped {
	t.Helper()
	watched, err := r.Client.Watch(t.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace(r.Namespace()),
		client.MatchingLabels{discoveryv1.LabelServiceName: monitoring.Name})
	requireNoError(t, err)
	s, done := &scraped{slices: map[string][]string{}}, make(chan struct{})
	t.Cleanup(func() { watched.Stop(); <-done })
	go func() {
		defer close(done)
		for event := range watched.ResultChan() {
			if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok {
				s.recordSlice(event.Type, slice)
			}
		}
	}()
	return s
}

func (s *scraped) recordSlice(change watch.EventType, slice *discoveryv1.EndpointSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[slice.Name] = nil
	for _, endpoint := range slice.Endpoints {
		if change != watch.Deleted {
			s.slices[slice.Name] = append(s.slices[slice.Name], *endpoint.NodeName)
		}
	}
	s.seen = append(s.seen, s.currentNodes())
}

// currentNodes returns the listed nodes. The caller holds the lock.
func (s *scraped) currentNodes() string {
	var nodes []string
	for _, names := range s.slices {
		nodes = append(nodes, names...)
	}
	slices.Sort(nodes)
	return strings.Join(nodes, " ")
}

// statesSince returns the states after a moment, and the new moment.
func (s *scraped) statesSince(moment int) ([]string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen[moment:]), len(s.seen)
}

// waitForNodes waits until the listed nodes are the given nodes.
func (s *scraped) waitForNodes(t *testing.T, r *testenv.Environment, nodes string) {
	t.Helper()
	awaitCondition(t, r, "the nodes that are scraped to be ["+nodes+"]", &corev1.Node{},
		func(context.Context, client.Reader) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.currentNodes() == nodes, nil
		})
}

//
func TestStoryPrometheusFindsTheNodesThatAreInService(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: testenv.Hosts(2), ServiceCA: true})
	o := run(t, r)
	seen := followSlices(t, r)
	list(t, r)
	waitUntilReady(t, r)
	const both = "instance-1 instance-2"
	seen.waitForNodes(t, r, both)
	t.Run("a ServiceMonitor tells it to scrape them, and another one the operator", func(t *testing.T) {
		for _, name := range []string{monitoring.Name, v1alpha1.OperatorName} {
			monitor := &unstructured.Unstructured{}
			monitor.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"})
			requireNoError(t, r.Client.Get(t.Context(), keyOf(r.Namespace(), name), monitor))
		}
	})
	t.Run("they serve HTTPS, with the certificate that the service CA makes for the Service, to clients that the cluster knows", func(t *testing.T) {
		for _, h := range r.Hosts() {
			awaitCondition(t, r, h.Options.Name+" to serve HTTPS", &v1alpha1.WindowsInstance{},
				func(ctx context.Context, _ client.Reader) (bool, error) {
					certificate, missing := h.Machine().Drive().ReadFile(`C:\var\lib\kubelet\pki\kubelet-client-current.pem`)
					status, _, err := h.Machine().Host().Probes.HTTPGet(ctx, "https://127.0.0.1:9182/metrics", certificate)
					return missing == nil && err == nil && status == 200, nil
				})
		}
	})
	_, moment := seen.statesSince(0)

	requireNoError(t, o.Stop())
	_, err := r.RunOperator(func(c *operator.Config) { c.Version = "1.1.0-lab" })
	requireNoError(t, err)
	awaitCondition(t, r, "nodes of the next version", &corev1.Node{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var nodes corev1.NodeList
		err := reader.List(ctx, &nodes, client.MatchingLabels{corev1.LabelOSStable: "windows"})
		return len(nodes.Items) == 2 && !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
			return n.Annotations[v1alpha1.AnnotationVersion] != "1.1.0-lab"
		}), err
	})
	waitUntilReady(t, r)
	t.Run("a restart and an upgrade of the operator take none away", func(t *testing.T) {
		states, _ := seen.statesSince(moment)
		if slices.ContainsFunc(states, func(state string) bool { return state != both }) {
			t.Errorf("there were %q", states)
		}
	})
	list(t, r, "instance-2")
	waitUntilDeleted(t, r, "instance-1")
	seen.waitForNodes(t, r, "instance-2")
	t.Run("none was ever there that was no node", func(t *testing.T) {
		states, _ := seen.statesSince(0)
		for _, state := range states {
			if !slices.Contains([]string{"", "instance-1", "instance-2", both}, state) {
				t.Errorf("%q", state)
			}
		}
	})
}
