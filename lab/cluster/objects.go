package cluster

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// EachObject calls show for every object of all kinds that the API server serves and that can be listed.
func EachObject(ctx context.Context, config *rest.Config, show func(*unstructured.Unstructured) error) error {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of deprecated kinds
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("look at all objects: %w", err)
	}
	kinds, err := discovered.ServerPreferredResources()
	if err != nil {
		return fmt.Errorf("look at all objects: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("look at all objects: %w", err)
	}
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return fmt.Errorf("look at all objects: %w", err)
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			list, err := client.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("list %s: %w", kind.Name, err)
			}
			for i := range list.Items {
				if err := show(&list.Items[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
