package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// sources contains the sources of bundle and catalog.
type sources struct {
	base     v1alpha1.ClusterServiceVersion
	icon     []byte
	releases releases
	flavor   flavor
	line     support.ReleaseLine
	examples []json.RawMessage

	// From deploy/.
	deployment  appsv1.Deployment
	clusterRole rbacv1.ClusterRole
	role        rbacv1.Role
	definitions map[string][]byte // YAML, by name
	nodeRights  map[string][]byte // permissions of nodes' programs and Prometheus: YAML, by kind and name
	services    map[string][]byte // YAML, by name
}

func readSources(root string, line support.ReleaseLine) (*sources, error) {
	s := &sources{line: line, definitions: map[string][]byte{}, nodeRights: map[string][]byte{},
		services: map[string][]byte{}}
	olm := filepath.Join(root, "deploy", "olm")
	for name, into := range map[string]any{"base.yaml": &s.base, "releases.yaml": &s.releases} {
		data, err := os.ReadFile(filepath.Join(olm, name))
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(data, into); err != nil {
			return nil, fmt.Errorf("read deploy/olm/%s: %w", name, err)
		}
	}
	var err error
	if s.icon, err = os.ReadFile(filepath.Join(olm, "icon.svg")); err != nil {
		return nil, err
	}
	example, err := os.ReadFile(filepath.Join(root, "examples", "windows-disruption-policy.yaml"))
	if err != nil {
		return nil, err
	}
	if example, err = yaml.YAMLToJSONStrict(example); err != nil {
		return nil, fmt.Errorf("read examples/windows-disruption-policy.yaml: %w", err)
	}
	s.examples = []json.RawMessage{example}
	return s, s.readDeploy(filepath.Join(root, "deploy"))
}

// readDeploy reads the output of the kustomize base.
func (s *sources) readDeploy(directory string) error {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kustomization.yaml defines the order
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		return fmt.Errorf("build deploy/: %w", err)
	}
	for _, r := range built.Resources() {
		if err := s.addObject(r); err != nil {
			return fmt.Errorf("deploy/: %s %s: %w", r.GetKind(), r.GetName(), err)
		}
	}
	if s.deployment.Name == "" || len(s.clusterRole.Rules) == 0 || len(s.role.Rules) == 0 || len(s.definitions) == 0 {
		return fmt.Errorf("deploy/ must have a Deployment, a ClusterRole, a Role and CustomResourceDefinitions; is one missing in its kustomization.yaml?")
	}
	return nil
}

// addObject stores the objects of a bundle. OLM itself creates the ServiceAccount and the operator's bindings, and the
// administrator creates the namespace. A ClusterServiceVersion grants permissions only to ServiceAccounts, so the
// permissions of the nodes' programs are separate objects.
func (s *sources) addObject(r *resource.Resource) error {
	data, err := r.AsYAML()
	if err != nil {
		return err
	}
	switch kind, name := r.GetKind(), r.GetName(); kind {
	case "Deployment":
		return yaml.UnmarshalStrict(data, &s.deployment)
	case "ClusterRole", "ClusterRoleBinding":
		switch {
		case name != packageName:
			s.nodeRights[strings.ToLower(kind)+"_"+name] = data
		case kind == "ClusterRole":
			return yaml.UnmarshalStrict(data, &s.clusterRole)
		}
	case "Role":
		if name == packageName {
			return yaml.UnmarshalStrict(data, &s.role)
		}
		s.nodeRights[strings.ToLower(kind)+"_"+name], err = withoutNamespace(data)
		return err
	case "RoleBinding":
		if name == packageName {
			return nil
		}
		s.nodeRights[strings.ToLower(kind)+"_"+name], err = withoutNamespace(data)
		return err
	case "CustomResourceDefinition":
		s.definitions[name] = data
	case "Service":
		s.services[name], err = withoutNamespace(data)
		return err
	case "Namespace", "ServiceAccount":
	default:
		return fmt.Errorf("hack/bundle does not know how OLM installs this kind: add it there")
	}
	return nil
}

// withoutNamespace returns an object without namespace, which OLM creates in the operator's namespace.
func withoutNamespace(object []byte) ([]byte, error) {
	var fields map[string]any
	if err := yaml.UnmarshalStrict(object, &fields); err != nil {
		return nil, err
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "namespace")
	}
	return yaml.Marshal(fields)
}
