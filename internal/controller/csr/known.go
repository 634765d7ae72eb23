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

// hasRegisteredNode reports whether the instance's host has registered a Node. This inexpensive check comes first: a
// host without a Node may create any number of requests, and each would cause a read of all Nodes and Machines. The
// cache contains Windows nodes, and a new Node requeues the pending requests of that node. Only a Node that is bound
// to the instance may lack the Windows label.
func (r *Reconciler) hasRegisteredNode(ctx context.Context, instance *v1alpha1.WindowsInstance) (bool, error) {
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

// clusterReadTTL is the maximum age of a read of all Nodes and Machines that serves further requests. Many nodes
// request certificates at the same time, and one node can request any number.
const clusterReadTTL = 2 * time.Second

// readTimeout ends a read without a response from the API server, because other requests wait for it.
const readTimeout = 30 * time.Second

// clusterRead is the last read of the cluster. The data is not modified afterwards.
type clusterRead struct {
	mu       sync.Mutex // held during a read, so that other requests wait
	at       time.Time  // start of the read
	nodes    []corev1.Node
	machines []machinev1beta1.Machine
}

// readClusterIdentities returns the facts of the cluster besides the instances, and the time of the read. Neither
// hosts nor DNS are queried.
func (r *Reconciler) readClusterIdentities(ctx context.Context, instances []v1alpha1.WindowsInstance) (certrequest.ClusterIdentities, time.Time,
	error) {
	r.lastRead.mu.Lock()
	defer r.lastRead.mu.Unlock()
	if now := r.Clock.Now(); r.lastRead.at.IsZero() || now.Sub(r.lastRead.at) >= clusterReadTTL {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var nodes corev1.NodeList
		if err := r.Live.List(ctx, &nodes); err != nil {
			return certrequest.ClusterIdentities{}, now, fmt.Errorf("list Nodes to find the names and addresses in use: %w", err)
		}
		var machines machinev1beta1.MachineList
		if err := fleet.ListMachines(ctx, r.Live, &machines, instances); err != nil {
			return certrequest.ClusterIdentities{}, now, fmt.Errorf("list Machines to find the names and addresses in use: %w", err)
		}
		r.lastRead.at, r.lastRead.nodes, r.lastRead.machines = now, nodes.Items, machines.Items
	}
	present := certrequest.ClusterIdentities{Instances: instances, Nodes: r.lastRead.nodes, Machines: r.lastRead.machines}
	if r.Cluster == nil {
		return present, r.lastRead.at, nil
	}
	if cluster, err := r.Cluster.Current(); err == nil { // clusterconfig reports the error
		present.Cluster = &cluster
	}
	return present, r.lastRead.at, nil
}
