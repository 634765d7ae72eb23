package clusterconfig

import (
	"context"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/cluster"
)

// absenceGracePeriod is the time after which a missing optional object counts as absent. Some controllers renew
// Secrets by deletion, for example the service CA operator. An API server can return 404 for kinds that are served
// again a moment later. Without the grace period, every node would lose the data of these objects and receive it
// again.
const absenceGracePeriod = 20 * time.Second

// objectKey identifies an object or, with an empty name, a list of all objects of a kind.
type objectKey struct {
	kind reflect.Type
	name client.ObjectKey
}

func (k objectKey) String() string {
	return strings.TrimSpace(k.kind.Elem().Name() + " " + k.name.Name)
}

// recordingReader serves one read of the cluster. Each object is requested once, because several settings can be in
// one object. The reader records which objects and lists have content.
type recordingReader struct {
	client.Reader
	found map[objectKey]bool
	known map[objectKey]client.Object
}

func newRecordingReader(reader client.Reader) recordingReader {
	return recordingReader{reader, map[objectKey]bool{}, map[objectKey]client.Object{}}
}

// Get reads an object.
func (r recordingReader) Get(ctx context.Context, name client.ObjectKey, object client.Object, options ...client.GetOption) error {
	key := objectKey{reflect.TypeOf(object), name}
	if known, ok := r.known[key]; ok {
		reflect.ValueOf(object).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
		return nil
	}
	err := r.Reader.Get(ctx, name, object, options...)
	r.found[key] = err == nil && !cluster.IsWithoutMetricsClients(object)
	if copied, ok := object.DeepCopyObject().(client.Object); err == nil && ok {
		r.known[key] = copied
	}
	return err
}

// List reads all objects of a kind. When a definition is deleted, the API server deletes its objects first. A
// reader cannot distinguish this from a deletion of the last object by an administrator.
func (r recordingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	r.found[objectKey{kind: reflect.TypeOf(list)}] = err == nil && !isEmpty(list)
	return err
}

func isEmpty(list runtime.Object) bool { return meta.LenList(list) == 0 }

// absences are the objects that existed when the configuration of the nodes was read, and are absent now.
type absences struct {
	// existing contains the objects of the last read that the nodes follow.
	existing map[objectKey]bool
	since    map[objectKey]time.Time
}

// observeRead compares a read of the cluster with the last read that the nodes follow. It returns the time until all
// absences count, which is zero if the nodes follow this read, and the newly absent objects.
func (a *absences) observeRead(found map[objectKey]bool, now time.Time) (rest time.Duration, begun []string) {
	a.clearFound(found)
	for key, there := range found {
		if there || !a.existing[key] {
			continue
		}
		if _, known := a.since[key]; !known {
			a.since[key] = now
			begun = append(begun, key.String())
		}
		rest = max(rest, absenceGracePeriod-now.Sub(a.since[key]))
	}
	if rest == 0 {
		a.existing, a.since = found, nil
	}
	return rest, begun
}

// clearFound ends the absence of the objects that were found.
func (a *absences) clearFound(found map[objectKey]bool) {
	since := map[objectKey]time.Time{}
	for key, began := range a.since {
		if !found[key] {
			since[key] = began
		}
	}
	a.since = since
}
