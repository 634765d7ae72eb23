package testenv

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/deploy"
	"github.com/windows-machine-config/wmco/examples"
)

// Manifests returns the objects of deploy/ for a namespace, as built by an overlay that sets the namespace.
func Manifests(namespace string) ([]*unstructured.Unstructured, error) {
	files := filesys.MakeFsInMemory()
	err := fs.WalkDir(deploy.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := deploy.Files.ReadFile(name)
		if err != nil {
			return err
		}
		return files.WriteFile(path.Join("/deploy", name), data)
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	overlay, err := yaml.Marshal(types.Kustomization{Namespace: namespace, Resources: []string{"../deploy"}})
	if err != nil {
		return nil, fmt.Errorf("write an overlay for namespace %s: %w", namespace, err)
	}
	if err := files.WriteFile("/overlay/kustomization.yaml", overlay); err != nil {
		return nil, fmt.Errorf("write an overlay for namespace %s: %w", namespace, err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/overlay")
	if err != nil {
		return nil, fmt.Errorf("build the manifests for namespace %s: %w", namespace, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("build the manifests for namespace %s: %w", namespace, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("build the manifests for namespace %s: %w", namespace, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Example returns the object in a file of examples/.
func Example(name string) (*unstructured.Unstructured, error) {
	data, err := examples.Files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read example %s: %w", name, err)
	}
	if data, err = yaml.YAMLToJSONStrict(data); err != nil {
		return nil, fmt.Errorf("read example %s: %w", name, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("read example %s: %w", name, err)
	}
	return object, nil
}

// fieldOwner is the field owner of the lab's administrator.
const fieldOwner = client.FieldOwner("lab-administrator")

// Apply creates or changes an object as an administrator does with kubectl apply. Fields unknown to the API server
// are an error.
func (r *Environment) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	err := r.strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner,
		client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// applyCRD applies a definition and waits until the API server serves the kind and reports it to new clients, which
// happens a moment after the definition is established.
func (r *Environment) applyCRD(ctx context.Context, definition *unstructured.Unstructured) error {
	if err := r.Apply(ctx, definition); err != nil {
		return err
	}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(definition.GroupVersionKind())
	if err := r.WaitFor(ctx, "definition "+definition.GetName(), watched,
		func(ctx context.Context, reader client.Reader) (bool, error) {
			if err := reader.Get(ctx, client.ObjectKeyFromObject(definition), watched); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			// The conditions are null before the API server has processed the definition.
			value, _, err := unstructured.NestedFieldNoCopy(watched.Object, "status", "conditions")
			conditions, _ := value.([]any)
			for _, condition := range conditions {
				if c, ok := condition.(map[string]any); ok && c["type"] == "Established" &&
					c["status"] == string(metav1.ConditionTrue) {
					return true, nil
				}
			}
			return false, err
		}); err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(r.cluster.Config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		// An existing mapper may have cached the group without the kind.
		mapper, err := apiutil.NewDynamicRESTMapper(r.cluster.Config, httpClient)
		if err != nil {
			return false, err
		}
		return isMapped(mapper, definition)
	})
}

// isMapped reports whether a client can request all versions that a definition serves.
func isMapped(mapper meta.RESTMapper, definition *unstructured.Unstructured) (bool, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &typed); err != nil {
		return false, err
	}
	kind := schema.GroupKind{Group: typed.Spec.Group, Kind: typed.Spec.Names.Kind}
	for _, version := range typed.Spec.Versions {
		if !version.Served {
			continue
		}
		if _, err := mapper.RESTMapping(kind, version.Name); meta.IsNoMatchError(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}
