package owned

import (
	"context"
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func configMap(labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "wmco", Name: "kept", Labels: labels}, Data: data}
}

var desiredConfigMap = Object{Identity: configMap(nil, nil), Fill: func(object client.Object) {
	if c, ok := object.(*corev1.ConfigMap); ok {
		c.Data = map[string]string{"key": "wanted"}
	}
}}

func TestKeep(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}
	for name, c := range map[string]struct {
		present *corev1.ConfigMap
		adopt   bool
		want    State
	}{
		"a missing object is created":               {nil, false, Created},
		"an object that is as wanted stays":         {configMap(labels, map[string]string{"key": "wanted"}), false, Unchanged},
		"a changed object is corrected":             {configMap(labels, map[string]string{"key": "other", "more": "yes"}), false, Corrected},
		"an object of another owner is not changed": {configMap(nil, nil), false, Foreign},
		"an adopted object gets the label":          {configMap(map[string]string{"theirs": "yes"}, map[string]string{"key": "wanted"}), true, Corrected},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if c.present != nil {
				builder = builder.WithObjects(c.present.DeepCopy())
			}
			api := builder.Build()
			object := desiredConfigMap
			object.Adopt = func(client.Object) bool { return c.adopt }
			state, err := Keeper{api, api}.Keep(t.Context(), object)
			if err != nil || state != c.want {
				t.Fatalf("the state is %d, %v", state, err)
			}
			after := &corev1.ConfigMap{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(object.Identity), after); err != nil {
				t.Fatal(err)
			}
			if c.want == Foreign {
				if len(after.Labels)+len(after.Data) > 0 {
					t.Errorf("it was changed: %+v", after)
				}
				return
			}
			if !maps.Equal(after.Data, map[string]string{"key": "wanted"}) || after.Labels[v1alpha1.LabelManagedBy] != v1alpha1.OperatorName ||
				c.present != nil && after.Labels["theirs"] != c.present.Labels["theirs"] {
				t.Errorf("it is %+v", after)
			}
			if state, err := (Keeper{api, api}).Keep(t.Context(), object); err != nil || state != Unchanged {
				t.Errorf("the second time the state is %d, %v", state, err)
			}
		})
	}
}

func TestKeep_APIErrorsDetermineState(t *testing.T) {
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	failure := errors.New("no answer")
	for name, c := range map[string]struct {
		read, write error
		want        State
		wantErr     error
	}{
		"a kind that is not served":               {noKind, nil, NotServed, nil},
		"a kind that is removed before the write": {nil, noKind, NotServed, nil},
		"a read that fails":                       {failure, nil, Unchanged, failure},
		"a write that fails":                      {nil, failure, Unchanged, failure},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					if c.read != nil {
						return c.read
					}
					return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "kept")
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return c.write
				},
			}).Build()
			if state, err := (Keeper{api, api}).Keep(t.Context(), desiredConfigMap); state != c.want || !errors.Is(err, c.wantErr) {
				t.Errorf("the state is %d, %v", state, err)
			}
		})
	}
}

// The write of another client between the read and the correction must not be overwritten.
func TestKeep_ConcurrentWriteIsConflict(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}
	api := fake.NewClientBuilder().WithObjects(configMap(labels, nil)).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			other := configMap(nil, nil)
			if err := c.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil {
				return err
			}
			other.Data = map[string]string{"key": "theirs"}
			if err := c.Update(ctx, other); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}).Build()
	if _, err := (Keeper{api, api}).Keep(t.Context(), desiredConfigMap); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v", err)
	}
}

func TestDelete(t *testing.T) {
	for name, c := range map[string]struct {
		labels  map[string]string
		deleted bool
	}{
		"an object of the operator":  {map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}, true},
		"not that of another client": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(configMap(c.labels, nil)).Build()
			if err := (Keeper{api, api}).Delete(t.Context(), desiredConfigMap); err != nil {
				t.Fatal(err)
			}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(desiredConfigMap.Identity), configMap(nil, nil))
			if apierrors.IsNotFound(err) != c.deleted {
				t.Errorf("gone is not %t: %v", c.deleted, err)
			}
			if err := (Keeper{api, api}).Delete(t.Context(), desiredConfigMap); err != nil {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}
