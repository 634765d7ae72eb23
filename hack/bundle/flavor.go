package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// flavor is a package of the same operator in a catalog of its own.
type flavor struct {
	// prefix stands before the names of the package and of its releases, title before the name that users read.
	prefix, title string
	// subscriptions lists what a cluster needs one of.
	subscriptions []string
	// keywords are further words by which the console finds the package.
	keywords []string
	// note is the first paragraph of the description.
	note string
}

// flavors returns them by the name that -flavor takes.
func flavors() map[string]flavor {
	return map[string]flavor{
		// The earlier guides call the tile by this name.
		"redhat": {subscriptions: []string{"Red Hat OpenShift support for Windows Containers"},
			keywords: []string{"red hat windows machine config operator"}},
		"community": {prefix: "community-", title: "Community ",
			note: "This is the community distribution: it needs no subscription, and Red Hat does not support it.\n\n"},
	}
}

func parseFlavor(text string) (flavor, error) {
	f, ok := flavors()[text]
	if !ok {
		return flavor{}, fmt.Errorf("FLAVOR=%s is not known: the flavors are %s", text, strings.Join(sortedKeys(flavors()), ", "))
	}
	return f, nil
}

// packageName is the name of the package in a catalog.
func (f flavor) packageName() string { return f.prefix + packageName }

// release is the name of a release of the package.
func (f flavor) release(version string) string { return f.packageName() + ".v" + version }

// describe writes into a ClusterServiceVersion what differs between flavors.
func (f flavor) describe(csv *v1alpha1.ClusterServiceVersion) error {
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

// features begin the annotations by which the console filters operators.
const features = "features.operators.openshift.io/"

// describeFeatures says what is true in any case, and that the operator can be mirrored if all images have a digest:
// mirrors of a cluster are for digests.
func describeFeatures(csv *v1alpha1.ClusterServiceVersion) {
	csv.Annotations[features+"proxy-aware"] = "true"
	csv.Annotations[features+"cni"] = "true" // win-overlay, which the payload has
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
