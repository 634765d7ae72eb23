package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readOptional reads an object that a cluster need not have, nor its kind. found is false where it has not.
func readOptional(ctx context.Context, reader client.Reader, name string, object client.Object,
	id string) (about subject, found bool, err error) {
	err = reader.Get(ctx, splitName(name), object)
	if IsAbsent(err) {
		return subject{}, false, nil
	}
	if err != nil {
		return subject{}, false, fmt.Errorf("read %s: %w", id, err)
	}
	return subject{id, object.GetResourceVersion()}, true, nil
}

// listOptional reads all objects of a kind that a cluster need not have. The list is empty where it has not.
func listOptional(ctx context.Context, reader client.Reader, list client.ObjectList, kind string) error {
	if err := reader.List(ctx, list); err != nil && !IsAbsent(err) {
		return fmt.Errorf("read the %ss: %w", kind, err)
	}
	return nil
}

// IsAbsent reports whether the API server lacks the object, or the kind. It answers so too for a moment, while a kind is
// being made or an API server starts: a reader with patience decides when that counts.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
