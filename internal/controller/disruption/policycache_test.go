package disruption

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// policyReader is a reader with one policy that counts the reads.
type policyReader struct {
	client.Reader
	version   string
	instances []string
	reads     int
}

func (a *policyReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	a.reads++
	*into.(*v1alpha1.WindowsDisruptionPolicy) = *policyOf(a.version, a.instances...)
	into.SetNamespace(key.Namespace)
	return nil
}

func policyOf(version string, instances ...string) *v1alpha1.WindowsDisruptionPolicy {
	p := &v1alpha1.WindowsDisruptionPolicy{}
	p.ResourceVersion, p.Status.ObservedGeneration = version, 1
	for _, name := range instances {
		p.Status.Disruptions = append(p.Status.Disruptions, v1alpha1.Disruption{Instance: name,
			InstanceUID: types.UID("uid-" + name), HolderIdentity: "one"})
	}
	return p
}

func TestGate_HoldsReadsNewestPolicy(t *testing.T) {
	for sentence, c := range map[string]struct {
		cached, live policyReader
		wrote        *v1alpha1.WindowsDisruptionPolicy
		holds        bool
		reads        int // number of reads from the API server
	}{
		"what another process has written is in the cache": {
			cached: policyReader{version: "20", instances: []string{"a"}}, wrote: policyOf("10"), holds: true},
		"what this process has written may not be in the cache yet": {
			cached: policyReader{version: "10"}, live: policyReader{version: "20", instances: []string{"a"}}, wrote: policyOf("20", "a"), holds: true, reads: 1},
		"the API server was restored from a backup, and holds less": {
			cached: policyReader{version: "10"}, live: policyReader{version: "10"}, wrote: policyOf("20", "a"), reads: 1},
		"the API server was restored from a backup, and holds more": {
			cached: policyReader{version: "10", instances: []string{"a"}}, live: policyReader{version: "10", instances: []string{"a"}}, wrote: policyOf("20"), holds: true, reads: 1},
		"with nothing new, the API server is asked nothing": {
			cached: policyReader{version: "20", instances: []string{"a"}}, wrote: policyOf("20", "a"), holds: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			gate := NewGate(Options{Namespace: "wmco", Operator: "one"})
			gate.cache.client, gate.cache.live = &c.cached, &c.live
			gate.cache.storePolicy(c.wrote)
			for range 2 {
				if held, err := gate.Holds(t.Context(), "a"); err != nil || held != c.holds {
					t.Errorf("held: %t, %v", held, err)
				}
			}
			if c.live.reads != c.reads && c.live.reads != 2*c.reads {
				t.Errorf("the API server was asked %d times", c.live.reads)
			}
		})
	}
}
