package testenv

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

var errClosed = errors.New("the lab was closed")

// Close stops the lab: operators in this process, hosts, control plane, files. Objects of the environment are deleted
// from a shared control plane.
func (r *Environment) Close() error {
	r.stop(errClosed) // operators and stand-ins
	var group sync.WaitGroup
	for _, h := range r.Hosts() {
		group.Go(h.close)
	}
	group.Wait()
	r.group.Wait()
	var errs []error
	if r.options.Cluster != nil && r.Client != nil {
		errs = append(errs, r.emptyCluster())
	}
	for _, run := range slices.Backward(r.cleanup) {
		errs = append(errs, run())
	}
	r.cleanup = nil
	return errors.Join(errs...)
}

// emptyCluster deletes the objects of this environment: instances, Secret, ConfigMap, lease, nodes, certificate
// requests, and the operator's objects for Prometheus. The installed manifests are the same for each environment and
// are kept. The namespace is kept as well, because its deletion takes seconds.
func (r *Environment) emptyCluster() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	inNamespace := client.InNamespace(r.Namespace())
	var errs []error
	for _, kind := range []client.Object{
		&v1alpha1.WindowsInstance{}, &v1alpha1.WindowsDisruptionPolicy{}, &corev1.Secret{}, &corev1.ConfigMap{},
		&coordinationv1.Lease{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
		ofPrometheus("ServiceMonitor"), ofPrometheus("PrometheusRule"),
	} {
		err := r.Client.DeleteAllOf(ctx, kind, inNamespace)
		if !meta.IsNoMatchError(err) { // Nothing was installed.
			errs = append(errs, err)
		}
	}
	if r.options.MachineAPI {
		errs = append(errs, r.removeMachines(ctx))
	}
	errs = append(errs, r.Client.DeleteAllOf(ctx, &certificatesv1.CertificateSigningRequest{}))
	for _, h := range r.Hosts() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.NodeName()}}
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, node)))
	}
	return errors.Join(errs...)
}

func ofPrometheus(kind string) client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind})
	return object
}

// removeMachines deletes all Machines with their nodes, and the MachineSets that are not part of the installation.
func (r *Environment) removeMachines(ctx context.Context) error {
	inNamespace := client.InNamespace(v1alpha1.MachineNamespace)
	userData := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.MachineNamespace,
		Name: userdata.SecretName}}
	errs := []error{
		r.Client.DeleteAllOf(ctx, &machinev1.MachineHealthCheck{}, inNamespace),
		client.IgnoreNotFound(r.Client.Delete(ctx, userData)),
	}
	var sets machinev1.MachineSetList
	errs = append(errs, r.Client.List(ctx, &sets, inNamespace))
	for i := range sets.Items {
		if set := &sets.Items[i]; set.Spec.Template.Labels[v1alpha1.LabelMachineOSID] != "" {
			errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, set)))
		}
	}
	var machines machinev1.MachineList
	errs = append(errs, r.Client.List(ctx, &machines, inNamespace))
	for i := range machines.Items {
		machine := &machines.Items[i]
		// No controller is left to remove the finalizers.
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, machine)),
			client.IgnoreNotFound(r.Client.Patch(ctx, machine, patch)))
	}
	return errors.Join(append(errs, r.Client.DeleteAllOf(ctx, &corev1.Node{}))...)
}

// fileReleaseTimeout is the maximum time after the stop of a host during which files may still be written: client-go's
// certificate managers do not wait for their goroutines.
const fileReleaseTimeout = 10 * time.Second

func (r *Environment) removeDir() error { return removeAll(r.dir) }

// removeAll removes a directory of stopped hosts.
func removeAll(path string) error {
	var last error
	for deadline := time.Now().Add(fileReleaseTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = os.RemoveAll(path); !errors.Is(last, syscall.ENOTEMPTY) {
			break
		}
	}
	return last
}
