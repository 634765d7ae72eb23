package main

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

const generated = "# Written by hack/bundle; do not edit.\n"

// generateFiles returns all files, keyed by their path below deploy/olm.
func generateFiles(s *sources, o options) (map[string][]byte, error) {
	if err := s.releases.checkUpgradePath(o.version); err != nil {
		return nil, err
	}
	if o.pauseImage != "" {
		s.replacePauseImage(o.pauseImage)
	}
	for variable, image := range map[string]string{"IMAGE": o.image, "PAUSE_IMAGE": o.pauseImage} {
		if image != "" && !hasDigest(image) {
			return nil, fmt.Errorf("%s=%s has no digest, by which a mirror of the release is found: give name@sha256:..., as "+
				"`make image` prints it last", variable, image)
		}
	}
	if _, err := name.ParseReference(o.bundleImage); o.bundleImage != "" && err != nil {
		return nil, fmt.Errorf("BUNDLE_IMAGE=%s is not the name of an image: %w", o.bundleImage, err)
	}
	csv, err := clusterServiceVersion(s, o.image)
	if err != nil {
		return nil, err
	}
	object, err := manifestFromCSV(csv)
	if err != nil {
		return nil, err
	}
	catalog, err := newCatalog(s, csv, o.bundleImage)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"bundle/bundle.Dockerfile": []byte(generated + formatDockerfile(bundleAnnotations(s))),
		"catalog/catalog.yaml":     catalog,
	}
	for name, object := range map[string]any{
		"bundle/manifests/" + s.flavor.packageName() + ".clusterserviceversion.yaml": object,
		"bundle/metadata/annotations.yaml":                                           map[string]any{"annotations": bundleAnnotations(s)},
		"bundle/metadata/properties.yaml":                                            map[string]any{"properties": releaseProperties(s)},
	} {
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[name] = append([]byte(generated), data...)
	}
	for name, definition := range s.definitions {
		resource, group, _ := strings.Cut(name, ".")
		files["bundle/manifests/"+group+"_"+resource+".yaml"] = append([]byte(generated), definition...)
	}
	for name, object := range s.services {
		files["bundle/manifests/service_"+name+".yaml"] = append([]byte(generated), object...)
	}
	for name, object := range s.nodeRights {
		files["bundle/manifests/"+name+".yaml"] = append([]byte(generated), object...)
	}
	return files, nil
}

// bundleAnnotations describe the content of the bundle. A catalog of OpenShift is for one minor version. The last
// annotation is the range of the catalogs that offer the release.
func bundleAnnotations(s *sources) map[string]string {
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1":         "registry+v1",
		prefix + "manifests.v1":         "manifests/",
		prefix + "metadata.v1":          "metadata/",
		prefix + "package.v1":           s.flavor.packageName(),
		prefix + "channels.v1":          defaultChannel,
		prefix + "channel.default.v1":   defaultChannel,
		"com.redhat.openshift.versions": "v" + s.line.Oldest().OpenShift + "-v" + s.line.Newest().OpenShift,
	}
}

// formatDockerfile returns the Dockerfile of the bundle's image, with the bundle directory as context.
func formatDockerfile(labels map[string]string) string {
	var b strings.Builder
	b.WriteString("FROM scratch\n")
	for _, name := range sortedKeys(labels) {
		fmt.Fprintf(&b, "LABEL %s=%q\n", name, labels[name])
	}
	b.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return b.String()
}
