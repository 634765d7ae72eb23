package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// A file-based catalog is a stream of objects of these three kinds.
type (
	catalogPackage struct {
		Schema         string       `json:"schema"`
		Name           string       `json:"name"`
		DefaultChannel string       `json:"defaultChannel"`
		Description    string       `json:"description,omitempty"`
		Icon           *catalogIcon `json:"icon,omitempty"`
	}
	catalogIcon struct {
		Data      []byte `json:"base64data"`
		MediaType string `json:"mediatype"`
	}
	catalogChannel struct {
		Schema  string         `json:"schema"`
		Package string         `json:"package"`
		Name    string         `json:"name"`
		Entries []channelEntry `json:"entries"`
	}
	// channelEntry is a release in a channel. The release upgrades the replaced release, the releases skipped by
	// name, and the releases in the range.
	channelEntry struct {
		Name      string   `json:"name"`
		Replaces  string   `json:"replaces,omitempty"`
		Skips     []string `json:"skips,omitempty"`
		SkipRange string   `json:"skipRange,omitempty"`
	}
	catalogBundle struct {
		Schema        string                  `json:"schema"`
		Package       string                  `json:"package"`
		Name          string                  `json:"name"`
		Image         string                  `json:"image"`
		Properties    []property              `json:"properties"`
		RelatedImages []v1alpha1.RelatedImage `json:"relatedImages"`
	}
	property struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
)

// maxOpenShiftVersion is the property by which OLM blocks upgrades of the cluster to versions that the release does
// not support.
const maxOpenShiftVersion = "olm.maxOpenShiftVersion"

// releaseProperties returns the properties of the release that OLM does not read from the bundle.
func releaseProperties(s *sources) []property {
	return []property{{maxOpenShiftVersion, s.line.Newest().OpenShift}}
}

// headEntry returns the channel entry of the newest release.
func headEntry(f flavor, all releases) channelEntry {
	head := all.headRelease()
	entry := channelEntry{Name: f.releaseName(head.Version), SkipRange: head.skipRange()}
	if replaced := all.replacedVersion(); replaced != "" {
		entry.Replaces = f.releaseName(replaced)
	}
	for _, skipped := range head.Skips {
		entry.Skips = append(entry.Skips, f.releaseName(skipped))
	}
	return entry
}

// newCatalog returns the catalog: the package, the channel, and the bundle of the newest release. Earlier releases
// are not in the catalog, because an entry needs a bundle, and the head replaces each of them directly.
func newCatalog(s *sources, csv *v1alpha1.ClusterServiceVersion, image string) ([]byte, error) {
	objects := []any{
		catalogPackage{
			Schema: "olm.package", Name: s.flavor.packageName(), DefaultChannel: defaultChannel, Description: csv.Annotations["description"],
			Icon: &catalogIcon{Data: s.icon, MediaType: csv.Spec.Icon[0].MediaType},
		},
		catalogChannel{Schema: "olm.channel", Package: s.flavor.packageName(), Name: defaultChannel,
			Entries: []channelEntry{headEntry(s.flavor, s.releases)}},
		bundleOf(s, csv, image),
	}
	var b bytes.Buffer
	b.WriteString(generated) // in the first object: an object without content is refused
	for i, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write the catalog: %w", err)
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(data)
	}
	return b.Bytes(), nil
}

func bundleOf(s *sources, csv *v1alpha1.ClusterServiceVersion, image string) catalogBundle {
	release := s.releases.headRelease()
	image = cmp.Or(image, s.flavor.packageName()+"-bundle:v"+release.Version)
	bundle := catalogBundle{
		Schema: "olm.bundle", Package: s.flavor.packageName(), Name: csv.Name, Image: image,
		RelatedImages: append([]v1alpha1.RelatedImage{{Name: "bundle", Image: image}}, csv.Spec.RelatedImages...),
	}
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(owned.Name, ".")
		bundle.Properties = append(bundle.Properties,
			property{"olm.gvk", map[string]string{"group": group, "kind": owned.Kind, "version": owned.Version}})
	}
	bundle.Properties = append(bundle.Properties,
		property{"olm.package", map[string]string{"packageName": s.flavor.packageName(), "version": release.Version}},
		property{"olm.csv.metadata", map[string]any{
			"annotations": csv.Annotations, "displayName": csv.Spec.DisplayName, "description": csv.Spec.Description,
			"keywords": csv.Spec.Keywords,
			"maturity": csv.Spec.Maturity, "minKubeVersion": csv.Spec.MinKubeVersion, "provider": csv.Spec.Provider,
			"links":        csv.Spec.Links,
			"installModes": csv.Spec.InstallModes, "customResourceDefinitions": csv.Spec.CustomResourceDefinitions,
		}},
	)
	bundle.Properties = append(bundle.Properties, releaseProperties(s)...)
	return bundle
}
