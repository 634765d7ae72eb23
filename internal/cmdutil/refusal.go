package cmdutil

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// explainingClient is a client that adds the next action of an administrator to the error of a refused request.
type explainingClient struct{ client.Client }

func (c explainingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	return ExplainError(c.Client.Get(ctx, key, object, o...))
}

func (c explainingClient) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return ExplainError(c.Client.List(ctx, list, o...))
}

func (c explainingClient) Patch(ctx context.Context, object client.Object, p client.Patch, o ...client.PatchOption) error {
	return ExplainError(c.Client.Patch(ctx, object, p, o...))
}

func (c explainingClient) Create(ctx context.Context, object client.Object, o ...client.CreateOption) error {
	return ExplainError(c.Client.Create(ctx, object, o...))
}

func (c explainingClient) Delete(ctx context.Context, object client.Object, o ...client.DeleteOption) error {
	return ExplainError(c.Client.Delete(ctx, object, o...))
}

// ExplainError adds the next action of an administrator to a refusal of the API server.
func ExplainError(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w. An administrator of the cluster can grant this right; docs/cli.md lists the rights that each command needs",
			err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w. Log in again, for instance with: oc login", err)
	case isOperatorKindMissing(err):
		return fmt.Errorf("the cluster does not serve %s, so the Windows Machine Config Operator is not installed in it: %w",
			v1alpha1.GroupVersion, err)
	}
	return err
}

// isOperatorKindMissing reports whether the error is about a missing kind of the operator.
func isOperatorKindMissing(err error) bool {
	var kind *meta.NoKindMatchError
	if errors.As(err, &kind) {
		return kind.GroupKind.Group == v1alpha1.GroupVersion.Group
	}
	var resource *meta.NoResourceMatchError
	return errors.As(err, &resource) && resource.PartialResource.Group == v1alpha1.GroupVersion.Group
}
