// Package page replaces the page Observe, Dashboards of OpenShift's console, which is no Go module. It only
// displays the dashboards that the console would display, from the same ConfigMaps and with the same queries.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	// namespace is the namespace in which the console finds dashboards.
	namespace = "openshift-config-managed"
	label     = "console.openshift.io/dashboard=true"
)

//go:embed static
var static embed.FS

// Handler serves the page with the current dashboards in the API server.
func Handler(client dynamic.Interface) http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the directory is part of this package
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /dashboards", func(w http.ResponseWriter, r *http.Request) {
		found, err := dashboards(r.Context(), client)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found) // fails only if the client has disconnected
	})
	return mux
}

// dashboards returns the dashboards in the ConfigMaps, sorted by name.
func dashboards(ctx context.Context, client dynamic.Interface) ([]json.RawMessage, error) {
	kind := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	list, err := client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, fmt.Errorf("list the dashboards in namespace %s: %w", namespace, err)
	}
	all := []json.RawMessage{}
	for _, item := range list.Items {
		data, _, err := unstructured.NestedStringMap(item.Object, "data")
		if err != nil {
			return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, item.GetName(), err)
		}
		for _, name := range slices.Sorted(maps.Keys(data)) {
			if !json.Valid([]byte(data[name])) {
				return nil, fmt.Errorf("ConfigMap %s/%s: %s is no JSON", namespace, item.GetName(), name)
			}
			all = append(all, json.RawMessage(data[name]))
		}
	}
	return all, nil
}
