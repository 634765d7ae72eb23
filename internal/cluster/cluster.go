// Package cluster reads the settings of an OpenShift cluster that affect nodes into a nodespec.Cluster, with
// one file for each concern.
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

// AddToScheme registers the API types that Read needs, except for the types of Kubernetes itself.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(configv1.Install(scheme), operatorv1.Install(scheme), operatorv1alpha1.Install(scheme),
		machineconfigv1.Install(scheme))
}

// Names of singleton objects.
const (
	workerPool           = "worker"
	controllerConfig     = "machine-config-controller"
	renderedWorkerPrefix = "rendered-worker-"
	apiServerCAConfigMap = "kube-root-ca.crt"
	apiServerCAKey       = "ca.crt"
)

// Watched are objects that may affect the result of Read.
type Watched struct {
	// Object has the kind of the objects.
	Object client.Object
	// Names reports whether a name belongs to the objects.
	Names func(string) bool
}

// Objects returns the objects read by Read of kinds that every OpenShift has. A change of any of these objects
// triggers another read of the API server. Read also reads OptionalObjects, the ConfigMaps APIServerCA and
// MetricsClients, and the Secrets PullSecret and MetricsServing.
func Objects() []Watched {
	return []Watched{
		{&configv1.Infrastructure{}, nameEquals("cluster")},
		{&configv1.ClusterVersion{}, nameEquals("version")},
		{&configv1.Network{}, nameEquals("cluster")},
		{&operatorv1.Network{}, nameEquals("cluster")},
		{&machineconfigv1.MachineConfigPool{}, nameEquals(workerPool)},
		{&machineconfigv1.ControllerConfig{}, nameEquals(controllerConfig)},
		// The pool may name an object that is created, or recreated, later.
		{&machineconfigv1.MachineConfig{}, func(name string) bool { return strings.HasPrefix(name, renderedWorkerPrefix) }},
	}
}

// OptionalObjects returns the other objects read by Read, of kinds that the API server may not have.
func OptionalObjects() []Watched {
	all := func(string) bool { return true }
	return []Watched{
		{&configv1.Proxy{}, nameEquals("cluster")},
		{&configv1.Image{}, nameEquals("cluster")},
		{&configv1.ImageDigestMirrorSet{}, all},
		{&configv1.ImageTagMirrorSet{}, all},
		{&configv1.ClusterImagePolicy{}, all},
		{&configv1.ImagePolicy{}, all},
		{&operatorv1alpha1.ImageContentSourcePolicy{}, all},
		{&machineconfigv1.KubeletConfig{}, all},
		{&machineconfigv1.ContainerRuntimeConfig{}, all},
		{&operatorv1.MachineConfiguration{}, nameEquals("cluster")},
	}
}

func nameEquals(want string) func(string) bool {
	return func(name string) bool { return name == want }
}

// APIServerCA returns the ConfigMap, maintained by Kubernetes in every namespace, with the authorities that
// verify the API server's certificate.
func APIServerCA(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: apiServerCAConfigMap}
}

// Error is a missing or unusable object of the cluster. Any other error of Read is a failed request.
type Error struct {
	Object  string // kind and name: "Infrastructure cluster"
	Field   string // "status.apiServerInternalURI"; empty for the object itself
	Message string // problem and remedy
}

// Error returns the problem in one sentence.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Object + ": " + e.Message
	}
	return e.Object + ", " + e.Field + ": " + e.Message
}

// Read reads the cluster. The namespace is the operator's own. If an object is missing or invalid, the error is
// an *Error for the first such object. The notices list the settings that Windows nodes do not follow; there
// are none with an error. Former contains the serving certificate and client authorities that exporters keep
// while those of the cluster are unusable; zero for none.
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

// get reads one object. For a missing object or kind, the error is an *Error with a remedy.
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
