package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// flavor is a variant of the package for a separate catalog.
type flavor struct {
	// prefix precedes the names of the package and of its releases, title precedes the display name.
	prefix, title string
	// subscriptions lists alternative subscriptions, of which a cluster needs one.
	subscriptions []string
	// keywords are additional search terms for the console.
	keywords []string
	// note is the first paragraph of the description.
	note string
}

// flavorsByName returns the flavors, keyed by the value of -flavor.
func flavorsByName() map[string]flavor {
	return map[string]flavor{
		// This is the name of the tile in the earlier guides.
		"redhat": {subscriptions: []string{"Red Hat OpenShift support for Windows Containers"},
			keywords: []string{"red hat windows machine config operator"}},
		"community": {prefix: "community-", title: "Community ",
			note: "This is the community distribution: it needs no subscription, and Red Hat does not support it.\n\n"},
	}
}

func parseFlavor(text string) (flavor, error) {
	f, ok := flavorsByName()[text]
	if !ok {
		return flavor{}, fmt.Errorf("FLAVOR=%s is not known: the flavors are %s", text, strings.Join(sortedKeys(flavorsByName()), ", "))
	}
	return f, nil
}

// packageName returns the name of the package in a catalog.
func (f flavor) packageName() string { return f.prefix + packageName }

// releaseName returns the name of a release of the package.
func (f flavor) releaseName(version string) string { return f.packageName() + ".v" + version }

// customizeCSV sets the fields of a ClusterServiceVersion that differ between flavors.
func (f flavor) customizeCSV(csv *v1alpha1.ClusterServiceVersion) error {
	csv.Spec.DisplayName = f.title + csv.Spec.DisplayName
	csv.Spec.Keywords = append(csv.Spec.Keywords, f.keywords...)
	csv.Spec.Description = f.note + csv.Spec.Description
	if len(f.subscriptions) == 0 {
		return nil
	}
	text, err := json.Marshal(f.subscriptions)
	csv.Annotations["operators.openshift.io/valid-subscription"] = string(text)
	return err
}

// features is the prefix of the annotations that the console uses to filter operators.
const features = "features.operators.openshift.io/"

// setFeatures sets the features that always apply, and marks the operator as mirrorable if all images have a
// digest, because mirrors of a cluster require digests.
func setFeatures(csv *v1alpha1.ClusterServiceVersion) {
	csv.Annotations[features+"proxy-aware"] = "true"
	csv.Annotations[features+"cni"] = "true" // win-overlay, included in the payload
	for _, image := range csv.Spec.RelatedImages {
		if !hasDigest(image.Image) {
			return
		}
	}
	csv.Annotations[features+"disconnected"] = "true"
}

func hasDigest(image string) bool {
	_, err := name.NewDigest(image)
	return err == nil
}
