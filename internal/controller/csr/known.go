package csr

import (
	"context"
	"fmt"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/fleet"
	"github.com/windows-machine-config/wmco/internal/policy/certrequest"
)

// registered reports whether the instance's host has registered its Node. It is asked first, and costs little: a host
// whose Node is not there may make any number of requests, and all that is there would be read for each of them. The
// cache has Windows nodes, which wake their requests when they come. Only a Node that is bound to the instance may lack
// that label.
func (r *Reconciler) registered(ctx context.Context, instance *v1alpha1.WindowsInstance) (bool, error) {
	name, readers := instance.Status.NodeRef.Name, []client.Reader{r.Client, r.Live}
	if instance.Status.NodeRef.UID == "" {
		readers = readers[:1]
	}
	for _, reader := range readers {
		node := &corev1.Node{}
		if err := reader.Get(ctx, types.NamespacedName{Name: name}, node); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read Node %s: %w", name, err)
		} else if err == nil && certrequest.NodeOf(instance, node).Registered {
			return true, nil
		}
	}
	return false, nil
}

// sharedFor is how long one reading of all Nodes and Machines serves all requests: many nodes ask at the same time, and
// one node asks as often as it likes.
const sharedFor = 2 * time.Second

// readTimeout ends a reading that the API server does not answer: others wait for it.
const readTimeout = 30 * time.Second

// reading is what was last read of the cluster. It is not changed afterward.
type reading struct {
	mu       sync.Mutex // held while it is read, so that others wait for it
	at       time.Time  // when the reading began
	nodes    []corev1.Node
	machines []machinev1beta1.Machine
}

// present returns what there is besides the instances, and when that was read. No host is asked, and no DNS.
func (r *Reconciler) present(ctx context.Context, instances []v1alpha1.WindowsInstance) (certrequest.Present, time.Time,
	error) {
	r.reading.mu.Lock()
	defer r.reading.mu.Unlock()
	if now := r.Clock.Now(); r.reading.at.IsZero() || now.Sub(r.reading.at) >= sharedFor {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var nodes corev1.NodeList
		if err := r.Live.List(ctx, &nodes); err != nil {
			return certrequest.Present{}, now, fmt.Errorf("list Nodes to see which names and addresses are taken: %w", err)
		}
		var machines machinev1beta1.MachineList
		if err := fleet.ListMachines(ctx, r.Live, &machines, instances); err != nil {
			return certrequest.Present{}, now, fmt.Errorf("list Machines to see which names and addresses are taken: %w", err)
		}
		r.reading.at, r.reading.nodes, r.reading.machines = now, nodes.Items, machines.Items
	}
	present := certrequest.Present{Instances: instances, Nodes: r.reading.nodes, Machines: r.reading.machines}
	if r.Cluster == nil {
		return present, r.reading.at, nil
	}
	if cluster, err := r.Cluster.Current(); err == nil { // clusterconfig tells the error
		present.Cluster = &cluster
	}
	return present, r.reading.at, nil
}
