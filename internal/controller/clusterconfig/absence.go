package clusterconfig

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/policy/absence"
)

// lastingAbsence is how long an optional object must be absent to count as such. Secrets are renewed by deleting them,
// the service CA operator's among them, and an API server answers 404 for kinds that it serves again a moment later:
// without this, every node would lose what the objects hold and get it again.
const lastingAbsence = absence.Grace

// graceReader is a reader that gives optional objects that are absent for a moment as they were. Of an exporters'
// certificate that cannot be used, and of the authorities of their clients, it gives the last good ones, for as long as
// it takes: all else of the cluster is followed meanwhile, and exporters serve HTTPS to those that they should.
type graceReader struct {
	client.Reader
	clock clock.PassiveClock
	kept  map[keptKey]keptObject
	// unusable is what is wrong with objects of which the last good ones are given.
	unusable map[keptKey]cluster.Notice
}

func newGraceReader(reader client.Reader) *graceReader {
	return &graceReader{Reader: reader, clock: clock.RealClock{}, kept: map[keptKey]keptObject{},
		unusable: map[keptKey]cluster.Notice{}}
}

// keptKey is an object, or with an empty name a list of all objects of a kind.
type keptKey struct {
	kind reflect.Type
	name types.NamespacedName
}

func (k keptKey) String() string { return fmt.Sprintf("%s %s", k.kind.Elem().Name(), k.name) }

// isOptional reports whether a cluster may lack the object, and nodes do without. The absence of any other object is
// reported at once, and nodes keep everything.
func isOptional(key keptKey, object runtime.Object) bool {
	switch object.(type) {
	case *corev1.ConfigMap:
		return key.name == cluster.MetricsClients
	case *corev1.Secret, *configv1.Proxy, *configv1.Image, *machineconfigv1.ControllerConfig,
		*configv1.ImageDigestMirrorSetList, *configv1.ImageTagMirrorSetList,
		*configv1.ClusterImagePolicyList, *configv1.ImagePolicyList, *operatorv1alpha1.ImageContentSourcePolicyList,
		*machineconfigv1.KubeletConfigList, *machineconfigv1.ContainerRuntimeConfigList, *operatorv1.MachineConfigurationList:
		return true
	}
	return false
}

// Get reads an object.
func (r *graceReader) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	return r.given(ctx, keptKey{reflect.TypeOf(object), key}, object, r.Reader.Get(ctx, key, object, options...))
}

// List reads all objects of a kind.
func (r *graceReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.given(ctx, keptKey{kind: reflect.TypeOf(list)}, list, r.Reader.List(ctx, list, options...))
}

// given puts into object what nodes are to have, after it was read with the result err.
func (r *graceReader) given(ctx context.Context, key keptKey, object runtime.Object, err error) error {
	delete(r.unusable, key)
	switch {
	case !isOptional(key, object):
		return err
	case cluster.IsAbsent(err), err == nil && r.isEmptied(key, object):
		return r.absent(ctx, key, object, err)
	case err == nil && r.keepsFor(key, object):
		r.kept[key] = r.kept[key].found(r.kept[key].last)
		give(r.kept[key].last, object)
	case err == nil:
		r.kept[key] = r.kept[key].found(object.DeepCopyObject())
	}
	return err
}

// absent gives an object that is not there, or the list of a kind that has lost its last one.
func (r *graceReader) absent(ctx context.Context, key keptKey, object runtime.Object, err error) error {
	before := r.kept[key]
	now := before.missing(r.clock.Now())
	r.kept[key] = now
	if now.given == nil {
		return err
	}
	if !before.Began() {
		log.FromContext(ctx).Info("an object is absent; for some time nodes keep what it contained",
			"object", key.String(), "time", lastingAbsence)
	}
	give(now.given, object)
	return nil
}

// isEmptied reports whether a kind has no object any more, or an object nothing of what it was read for. When a
// definition is deleted, the API server deletes its objects first: a reader cannot tell that from an administrator who
// deletes the last object.
func (r *graceReader) isEmptied(key keptKey, object runtime.Object) bool {
	last := r.kept[key].last
	switch {
	case last == nil:
		return false
	case cluster.IsWithoutMetricsClients(object):
		return !cluster.IsWithoutMetricsClients(last)
	}
	return meta.IsListType(object) && meta.LenList(object) == 0 && meta.LenList(last) > 0
}

// keepsFor reports whether an object cannot be used, and there is a good one to give in its place.
func (r *graceReader) keepsFor(key keptKey, object runtime.Object) bool {
	fault := cluster.UnusableMetrics(object)
	if fault == nil || r.kept[key].last == nil {
		return false
	}
	fault.Message += " Until then, exporters keep the certificates that they have."
	r.unusable[key] = *fault
	return true
}

// notices returns what is wrong with the objects in whose place others were given by the last read.
func (r *graceReader) notices() []cluster.Notice { return slices.Collect(maps.Values(r.unusable)) }

// give sets an object to another one of its type.
func give(from, to runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

// confirm remembers the objects of a read of the cluster that was good.
func (r *graceReader) confirm() {
	for key, object := range r.kept {
		r.kept[key] = object.confirmed()
	}
}

// next returns the time until an absence will have lasted, at most limit.
func (r *graceReader) next(limit time.Duration) time.Duration {
	for _, object := range r.kept {
		if left := object.left(r.clock.Now()); left > 0 {
			limit = min(limit, left)
		}
	}
	return limit
}

// keptObject is what is known of an object.
type keptObject struct {
	// last is the object of the last good read of the cluster, and given that of the last read; nil for absent, or not
	// read yet.
	last, given runtime.Object
	absence.Absence
}

// found is after the object was read.
func (k keptObject) found(object runtime.Object) keptObject {
	return keptObject{last: k.last, given: object}
}

// missing is after the object was not there.
func (k keptObject) missing(now time.Time) keptObject {
	k.Absence, k.given = k.Continued(now), nil
	if k.left(now) > 0 {
		k.given = k.last
	}
	return k
}

// confirmed is after a good read of the cluster.
func (k keptObject) confirmed() keptObject {
	k.last = k.given
	return k
}

// left returns the time until the absence will have lasted; not above zero when it counts, or there is none.
func (k keptObject) left(now time.Time) time.Duration {
	if k.last == nil {
		return 0
	}
	return k.Left(now, lastingAbsence)
}
