// Package cluster reads the settings that nodes of an OpenShift cluster depend on into a nodespec.Cluster, one file for
// each concern.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// AddToScheme registers the API types that Read needs, besides those of Kubernetes itself.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(configv1.Install(scheme), operatorv1.Install(scheme), operatorv1alpha1.Install(scheme),
		machineconfigv1.Install(scheme))
}

// Names of objects that there is one of.
const (
	workerPool           = "worker"
	controllerConfig     = "machine-config-controller"
	renderedWorkerPrefix = "rendered-worker-"
	apiServerCAConfigMap = "kube-root-ca.crt"
	apiServerCAKey       = "ca.crt"
)

// Watched are objects whose change may change what Read returns.
type Watched struct {
	// Object is of their kind.
	Object client.Object
	// Names tells of a name whether it is one of theirs.
	Names func(string) bool
}

// Objects are the objects that Read reads of kinds that every OpenShift has. The API server is read again when one of
// them changes. Besides them there are OptionalObjects, the ConfigMaps APIServerCA and MetricsClients, and the Secrets
// PullSecret and MetricsServing.
func Objects() []Watched {
	return []Watched{
		{&configv1.Infrastructure{}, named("cluster")},
		{&configv1.ClusterVersion{}, named("version")},
		{&configv1.Network{}, named("cluster")},
		{&operatorv1.Network{}, named("cluster")},
		{&machineconfigv1.MachineConfigPool{}, named(workerPool)},
		{&machineconfigv1.ControllerConfig{}, named(controllerConfig)},
		// The pool names one that may be made, or made again, after it was named.
		{&machineconfigv1.MachineConfig{}, func(name string) bool { return strings.HasPrefix(name, renderedWorkerPrefix) }},
	}
}

// OptionalObjects returns the other objects that Read reads, of kinds that the API server may not have.
func OptionalObjects() []Watched {
	all := func(string) bool { return true }
	return []Watched{
		{&configv1.Proxy{}, named("cluster")},
		{&configv1.Image{}, named("cluster")},
		{&configv1.ImageDigestMirrorSet{}, all},
		{&configv1.ImageTagMirrorSet{}, all},
		{&configv1.ClusterImagePolicy{}, all},
		{&configv1.ImagePolicy{}, all},
		{&operatorv1alpha1.ImageContentSourcePolicy{}, all},
		{&machineconfigv1.KubeletConfig{}, all},
		{&machineconfigv1.ContainerRuntimeConfig{}, all},
		{&operatorv1.MachineConfiguration{}, named("cluster")},
	}
}

func named(want string) func(string) bool {
	return func(name string) bool { return name == want }
}

// APIServerCA returns the ConfigMap that Kubernetes keeps in every namespace, with the authorities that verify the API
// server's certificate.
func APIServerCA(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: apiServerCAConfigMap}
}

// Error is an object of the cluster that is absent or unusable for nodes. Any other error of Read is a failed request.
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

// Read reads the cluster. namespace is the operator's own. When an object is absent or wrong, the error is an *Error
// for the first such object. The notices list the settings that Windows nodes do not follow; there are none with an
// error. Exporters keep the former certificate and authorities while the cluster's cannot be used; zero for none.
func Read(ctx context.Context, reader client.Reader, namespace string, former nodespec.ServingCertificate) (nodespec.Cluster, []Notice, error) {
	var facts nodespec.Cluster
	var told notices
	for _, concern := range []func(context.Context, client.Reader, *nodespec.Cluster) error{
		readInfrastructure,
		readVersion,
		readNetwork,
		told.readHybridOverlay,
		told.readWorkerConfig,
		apiServerCA(namespace),
		readProxy,
		told.readTrustedCAs,
		told.readRegistries,
		told.readNotFollowed,
		told.readMetricsServing(namespace, former),
	} {
		if err := concern(ctx, reader, &facts); err != nil {
			return nodespec.Cluster{}, nil, err
		}
	}
	return facts, told, nil
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
		return &Error{Object: id,
			Message: "the API server does not have this kind: the operator needs an OpenShift cluster. " + remedy}
	}
	return fmt.Errorf("read %s: %w", id, err)
}
