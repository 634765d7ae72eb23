package disruption

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// answer is a reader with one policy that counts the reads.
type answer struct {
	client.Reader
	version string
	holds   []string
	asked   int
}

func (a *answer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	a.asked++
	*into.(*v1alpha1.WindowsDisruptionPolicy) = *policyOf(a.version, a.holds...)
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

func TestTheGateKnowsWhatTheAPIServerHas(t *testing.T) {
	for sentence, c := range map[string]struct {
		cached, live answer
		wrote        *v1alpha1.WindowsDisruptionPolicy
		holds        bool
		asked        int // number of reads from the API server
	}{
		"what another process has written is in the cache": {
			cached: answer{version: "20", holds: []string{"a"}}, wrote: policyOf("10"), holds: true},
		"what this process has written may not be in the cache yet": {
			cached: answer{version: "10"}, live: answer{version: "20", holds: []string{"a"}}, wrote: policyOf("20", "a"), holds: true, asked: 1},
		"the API server was restored from a backup, and holds less": {
			cached: answer{version: "10"}, live: answer{version: "10"}, wrote: policyOf("20", "a"), asked: 1},
		"the API server was restored from a backup, and holds more": {
			cached: answer{version: "10", holds: []string{"a"}}, live: answer{version: "10", holds: []string{"a"}}, wrote: policyOf("20"), holds: true, asked: 1},
		"with nothing new, the API server is asked nothing": {
			cached: answer{version: "20", holds: []string{"a"}}, wrote: policyOf("20", "a"), holds: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			gate := NewGate(Options{Namespace: "wmco", Operator: "one"})
			gate.memory.client, gate.memory.live = &c.cached, &c.live
			gate.memory.keep(c.wrote)
			for range 2 {
				if held, err := gate.Holds(t.Context(), "a"); err != nil || held != c.holds {
					t.Errorf("held: %t, %v", held, err)
				}
			}
			if c.live.asked != c.asked && c.live.asked != 2*c.asked {
				t.Errorf("the API server was asked %d times", c.live.asked)
			}
		})
	}
}
