// Package index finds WindowsInstances, Nodes and certificate requests in the cache by indexed fields. The
// cost of a lookup is independent of the number of objects. The cache shares the returned objects: callers must
// not modify them.
package index

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/policy/nodeidentity"
)

// Names of indexes. The API server does not know these names.
const (
	byNode              = "lookup.node"
	byHostKey           = "lookup.hostKey"
	byDisruptionPending = "lookup.disruptionPending"
	byLegacy            = "lookup.older"
	byInstance          = "lookup.instance"
	byUser              = "lookup.requester"
	indexedTrue         = "yes"
)

// Index is an index over a kind of object.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// Indexes returns all indexes of this package.
func Indexes() []Index {
	return []Index{
		{&v1alpha1.WindowsInstance{}, byNode, indexInstance(func(i *v1alpha1.WindowsInstance) string {
			if i.Status.NodeRef == nil {
				return ""
			}
			return i.Status.NodeRef.Name
		})},
		{&v1alpha1.WindowsInstance{}, byHostKey, indexInstance(func(i *v1alpha1.WindowsInstance) string {
			if i.Status.HostKey == nil {
				return ""
			}
			return i.Status.HostKey.Key
		})},
		{&v1alpha1.WindowsInstance{}, byDisruptionPending, indexInstance(func(i *v1alpha1.WindowsInstance) string {
			return indexIf(i.Status.DisruptionPending)
		})},
		{&corev1.Node{}, byInstance, func(object client.Object) []string {
			return indexValues(object.GetAnnotations()[v1alpha1.AnnotationInstance])
		}},
		{&corev1.Node{}, byLegacy, func(object client.Object) []string {
			node, ok := object.(*corev1.Node)
			return indexValues(indexIf(ok && nodeidentity.IsLegacyNode(node)))
		}},
		{&certificatesv1.CertificateSigningRequest{}, byUser, func(object client.Object) []string {
			csr, ok := object.(*certificatesv1.CertificateSigningRequest)
			if !ok || len(csr.Status.Conditions) > 0 {
				return nil
			}
			return indexValues(csr.Spec.Username)
		}},
	}
}

func indexInstance(value func(*v1alpha1.WindowsInstance) string) client.IndexerFunc {
	return func(object client.Object) []string {
		instance, ok := object.(*v1alpha1.WindowsInstance)
		if !ok {
			return nil
		}
		return indexValues(value(instance))
	}
}

func indexIf(holds bool) string {
	if holds {
		return indexedTrue
	}
	return ""
}

func indexValues(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// Add registers the indexes with a cache. It must be called once, before the first read from the cache.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range Indexes() {
		if err := indexer.IndexField(ctx, index.Object, index.Field, index.Values); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.Object, index.Field, err)
		}
	}
	return nil
}

// Instances finds WindowsInstances.
type Instances struct {
	Cache     client.Reader
	Namespace string
}

// OfNode returns the instances that have claimed the name of a Node, confirmed or not.
func (i Instances) OfNode(ctx context.Context, node string) ([]v1alpha1.WindowsInstance, error) {
	return i.findBy(ctx, byNode, node)
}

// WithHostKey returns the instances of hosts with a host key, in base64.
func (i Instances) WithHostKey(ctx context.Context, key string) ([]v1alpha1.WindowsInstance, error) {
	return i.findBy(ctx, byHostKey, key)
}

// DisruptionPending returns the instances that wait for a disruption slot.
func (i Instances) DisruptionPending(ctx context.Context) ([]v1alpha1.WindowsInstance, error) {
	return i.findBy(ctx, byDisruptionPending, indexedTrue)
}

func (i Instances) findBy(ctx context.Context, field, value string) ([]v1alpha1.WindowsInstance, error) {
	var found v1alpha1.WindowsInstanceList
	if err := i.Cache.List(ctx, &found, client.InNamespace(i.Namespace), client.MatchingFields{field: value},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("find WindowsInstances by %s: %w", field, err)
	}
	return found.Items, nil
}

// LegacyNodes returns the Nodes that a legacy operator (before version 12) has configured.
func LegacyNodes(ctx context.Context, cache client.Reader) ([]corev1.Node, error) {
	return findNodes(ctx, cache, byLegacy, indexedTrue)
}

// NodesBoundTo returns the Nodes with an annotation that names the instance. The kubelet may have written the
// annotation.
func NodesBoundTo(ctx context.Context, cache client.Reader, instance string) ([]corev1.Node, error) {
	return findNodes(ctx, cache, byInstance, instance)
}

func findNodes(ctx context.Context, cache client.Reader, field, value string) ([]corev1.Node, error) {
	var found corev1.NodeList
	if err := cache.List(ctx, &found, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("find Nodes by %s: %w", field, err)
	}
	return found.Items, nil
}

// RequestsBy returns the undecided certificate requests of a user.
func RequestsBy(ctx context.Context, cache client.Reader, user string) ([]certificatesv1.CertificateSigningRequest, error) {
	var found certificatesv1.CertificateSigningRequestList
	if err := cache.List(ctx, &found, client.MatchingFields{byUser: user}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("find certificate requests by %s: %w", byUser, err)
	}
	return found.Items, nil
}
