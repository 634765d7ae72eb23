package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readOptional reads an optional object of a possibly missing kind. Found is false if either is missing.
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

// listOptional lists all objects of an optional kind. The list is empty if the kind is missing.
func listOptional(ctx context.Context, reader client.Reader, list client.ObjectList, kind string) error {
	if err := reader.List(ctx, list); err != nil && !IsAbsent(err) {
		return fmt.Errorf("read the %ss: %w", kind, err)
	}
	return nil
}

// IsAbsent reports whether the API server lacks the object or the kind. The error may be temporary, while a
// kind is being created or an API server starts: callers decide how long to wait.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
