package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// clusterServiceVersion returns the description of the current release from which OLM installs.
func clusterServiceVersion(s *sources, image string) (*v1alpha1.ClusterServiceVersion, error) {
	csv := s.base.DeepCopy()
	release := s.releases.headRelease()
	parsed, err := semver.Parse(release.Version)
	if err != nil {
		return nil, err
	}
	csv.Name = s.flavor.releaseName(release.Version)
	csv.Spec.Version = version.OperatorVersion{Version: parsed}
	entry := headEntry(s.flavor, s.releases)
	csv.Spec.Replaces, csv.Spec.Skips = entry.Replaces, entry.Skips
	csv.Spec.MinKubeVersion = s.line.Oldest().Kubernetes + ".0"
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(s.icon), MediaType: "image/svg+xml"}}
	strategy, err := installStrategy(s, image)
	if err != nil {
		return nil, err
	}
	csv.Spec.InstallStrategy = strategy
	container := strategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
	csv.Spec.RelatedImages = relatedImages(container)
	csv.Annotations["containerImage"] = container.Image
	csv.Annotations["olm.skipRange"] = release.skipRange()
	setFeatures(csv)
	if csv.Annotations["alm-examples"], err = encodeIndented(s.examples); err != nil {
		return nil, err
	}
	return csv, s.flavor.customizeCSV(csv)
}

// relatedImages returns the images that a mirror of the release must have: the operator's image, and the images in
// the variables RELATED_IMAGE_<name>, which nodes pull.
func relatedImages(container corev1.Container) []v1alpha1.RelatedImage {
	images := []v1alpha1.RelatedImage{{Name: container.Name, Image: container.Image}}
	for _, variable := range container.Env {
		if name, ok := strings.CutPrefix(variable.Name, "RELATED_IMAGE_"); ok {
			images = append(images, v1alpha1.RelatedImage{Name: strings.ReplaceAll(strings.ToLower(name), "_", "-"),
				Image: variable.Value})
		}
	}
	return images
}

// pauseImage is the variable with the image that nodes pull for each pod.
const pauseImage = "RELATED_IMAGE_WINDOWS_PAUSE"

func (s *sources) replacePauseImage(image string) {
	for _, container := range s.deployment.Spec.Template.Spec.Containers {
		for i := range container.Env {
			if container.Env[i].Name == pauseImage {
				container.Env[i].Value = image
			}
		}
	}
}

// installStrategy returns the strategy for OLM: a Deployment, and permissions for its ServiceAccount.
func installStrategy(s *sources, image string) (v1alpha1.NamedInstallStrategy, error) {
	spec := *s.deployment.Spec.DeepCopy()
	account := spec.Template.Spec.ServiceAccountName
	if len(spec.Template.Spec.Containers) != 1 || account == "" {
		return v1alpha1.NamedInstallStrategy{},
			fmt.Errorf("the Deployment of deploy/ must have one container and a ServiceAccount")
	}
	container := &spec.Template.Spec.Containers[0]
	container.Image = cmp.Or(image, container.Image)
	i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "WATCH_NAMESPACE" })
	if i < 0 {
		return v1alpha1.NamedInstallStrategy{},
			fmt.Errorf("the Deployment of deploy/ has no environment variable WATCH_NAMESPACE")
	}
	// This is the namespace of the OperatorGroup, which is the operator's namespace with the install mode
	// OwnNamespace.
	container.Env[i].ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"}}
	return v1alpha1.NamedInstallStrategy{
		StrategyName: v1alpha1.InstallStrategyNameDeployment,
		StrategySpec: v1alpha1.StrategyDetailsDeployment{
			DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{{Name: s.deployment.Name, Spec: spec,
				Label: s.deployment.Labels}},
			ClusterPermissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account,
				Rules: s.clusterRole.Rules}},
			Permissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: s.role.Rules}},
		},
	}, nil
}

// manifestFromCSV returns the object without the fields that only a server writes.
func manifestFromCSV(csv *v1alpha1.ClusterServiceVersion) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	removeEmptyFields(object)
	return object, nil
}

// removeEmptyFields removes empty fields: null, and the empty objects that Go types write instead.
func removeEmptyFields(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			removeEmptyFields(field)
			if isEmptyField(key, field) {
				delete(v, key)
			}
		}
	case []any:
		for _, element := range v {
			removeEmptyFields(element)
		}
	}
}

func isEmptyField(key string, field any) bool {
	object, ok := field.(map[string]any)
	return field == nil || ok && len(object) == 0 && key != "emptyDir" // empty, but significant
}

func encodeIndented(value any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return b.String(), err
}
