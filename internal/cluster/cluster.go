// Package cluster reads what the nodes of an OpenShift cluster depend on, one file for each concern, into a nodespec.Cluster.
package cluster

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// AddToScheme registers the API types that Read needs, besides those of Kubernetes itself.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(configv1.Install(scheme), operatorv1.Install(scheme), machineconfigv1.Install(scheme))
}

// Objects are the kinds whose change may change what Read returns. ConfigMaps are not among them: their certificate authorities are
// read with the rest.
func Objects() []client.Object {
	return []client.Object{
		&configv1.Infrastructure{},
		&configv1.ClusterVersion{},
		&configv1.Network{},
		&operatorv1.Network{},
		&machineconfigv1.MachineConfigPool{},
	}
}

// Error is an object of the cluster that is absent or is not what a node can be made from. Any other error of Read is a request that
// failed.
type Error struct {
	Object  string // kind and name: "Infrastructure cluster"
	Field   string // "status.apiServerInternalURI"; empty when it is the object itself
	Message string // what is wrong and what to do
}

// Error says it in one sentence.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Object + ": " + e.Message
	}
	return e.Object + ", " + e.Field + ": " + e.Message
}

// Read reads the cluster. namespace is the operator's own. When an object is absent or wrong, the error is an *Error for the first
// such object.
func Read(ctx context.Context, reader client.Reader, namespace string) (nodespec.Cluster, error) {
	var facts nodespec.Cluster
	for _, concern := range []func(context.Context, client.Reader, *nodespec.Cluster) error{
		readInfrastructure,
		readVersion,
		readNetwork,
		readHybridOverlay,
		readWorkerConfig,
		apiServerCA(namespace),
	} {
		if err := concern(ctx, reader, &facts); err != nil {
			return nodespec.Cluster{}, err
		}
	}
	return facts, nil
}

// get reads one object; absent ones, and kinds that the cluster does not have, are an *Error that says what to do.
func get(ctx context.Context, reader client.Reader, name string, object client.Object, id, remedy string) error {
	err := reader.Get(ctx, splitName(name), object)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return &Error{Object: id, Message: "it does not exist. " + remedy}
	case meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		return &Error{Object: id, Message: "the API server does not know this kind: the operator needs an OpenShift cluster. " + remedy}
	}
	return fmt.Errorf("read %s: %w", id, err)
}
