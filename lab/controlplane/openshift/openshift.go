// Package openshift contains the additions of the profile openshift to a plain Kubernetes cluster: the
// CustomResourceDefinitions of OpenShift that a node operator uses, and the objects that an installation
// creates. The objects are files in objects/, the files and systemd units of a worker's Ignition configuration
// in worker/; both are text templates over [Cluster].
package openshift

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

//go:generate go run ./gencrds

var (
	//go:embed crds/*.yaml
	crdFiles embed.FS
	//go:embed objects/*.yaml
	objectFiles embed.FS
	//go:embed worker
	workerFiles embed.FS
)

// Version is the reported version of OpenShift. 5.0 is Kubernetes 1.36.
const Version = "5.0.3"

// Platforms are the values of Cluster.Platform.
var Platforms = []string{"None", "AWS", "Azure", "GCP", "Nutanix", "VSphere"}

// Cluster contains the differences between installed clusters.
type Cluster struct {
	// Domain is the cluster's name and its base domain, joined by a dot.
	Domain string
	// Platform is one of Platforms.
	Platform string
	// APIServerURL and APIServerInternalURI are the addresses of the API server for external clients and for
	// nodes.
	APIServerURL, APIServerInternalURI string
	// APIServerInternalPort is the port of APIServerInternalURI.
	APIServerInternalPort string
	// ServerCA, KubeletClientCA and KubeletServingCA are PEM bundles of the authorities for the API server's
	// certificate, for clients of kubelets, and for serving certificates of kubelets.
	ServerCA, KubeletClientCA, KubeletServingCA string
}

// ValidatePlatform returns an error with the list of platforms if name is not a platform.
func ValidatePlatform(name string) error {
	if slices.Contains(Platforms, name) {
		return nil
	}
	return fmt.Errorf("platform %q is not one of %s", name, strings.Join(Platforms, ", "))
}

// ExternalCloudProvider reports whether a cloud controller manager initializes nodes of the platform.
func ExternalCloudProvider(platform string) bool { return platform != "None" }

// CRDs returns the definitions to install.
func CRDs() ([]*unstructured.Unstructured, error) {
	entries, err := fs.Glob(crdFiles, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	var crds []*unstructured.Unstructured
	for _, name := range entries {
		data, err := crdFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		crd := &unstructured.Unstructured{}
		if err := sigsyaml.Unmarshal(data, &crd.Object); err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Objects returns the objects of the cluster in arbitrary order.
func Objects(c Cluster) ([]*unstructured.Unstructured, error) {
	v, err := newValues(c)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(objectFiles, "objects/*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		data, err := objectFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rendered, err := render(name, string(data), v)
		if err != nil {
			return nil, err
		}
		some, err := decode(rendered)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		document = bytes.TrimPrefix(document, []byte("---\n"))
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		asJSON, err := yaml.ToJSON(document)
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(asJSON); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func render(name, text string, v values) ([]byte, error) {
	t, err := template.New(name).Funcs(functions).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the template %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("fill in the template %s: %w", name, err)
	}
	return out.Bytes(), nil
}

var functions = template.FuncMap{
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"list":   func(s ...string) []string { return s },
	"lower":  strings.ToLower,
	"quote": func(s string) (string, error) {
		quoted, err := json.Marshal(s)
		return string(quoted), err
	},
}
