package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/windows-machine-config/wmco/hack/registry"
)

// mirrorRules maps repositories to mirrors.
type mirrorRules []configv1.ImageDigestMirrors

// readMirrors reads a file with objects in the format that `oc-mirror` and `oc adm release mirror` write for a
// cluster. Without a file, there are no rules.
func readMirrors(file string) (mirrorRules, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the mirrors: %w", err)
	}
	var rules mirrorRules
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var object struct {
			Kind string `json:"kind"`
			Spec struct {
				configv1.ImageDigestMirrorSetSpec
				operatorv1alpha1.ImageContentSourcePolicySpec
			} `json:"spec"`
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the mirrors %s: %w", file, err)
		}
		rules = append(rules, object.Spec.ImageDigestMirrors...)
		for _, old := range object.Spec.RepositoryDigestMirrors {
			rule := configv1.ImageDigestMirrors{Source: old.Source}
			for _, mirror := range old.Mirrors {
				rule.Mirrors = append(rule.Mirrors, configv1.ImageMirror(mirror))
			}
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("read the mirrors %s: it has no rule of an ImageDigestMirrorSet or ImageContentSourcePolicy",
			file)
	}
	return rules, nil
}

// findImages queries all mirrors. It implements imageSource.
func (m mirrorRules) findImages(ctx context.Context, reference name.Digest) ([]registry.Image, error) {
	repository := reference.Context().String()
	var failures []error
	for _, rule := range m {
		rest, ok := pathInScope(repository, rule.Source)
		if !ok {
			continue
		}
		for _, mirror := range rule.Mirrors {
			images, err := fetchImages(ctx, string(mirror)+rest+"@"+reference.DigestStr())
			if err == nil {
				return images, nil
			}
			failures = append(failures, err)
		}
	}
	return nil, errors.Join(failures...)
}

// isSourceForbidden reports whether only mirrors may be queried.
func (m mirrorRules) isSourceForbidden(reference name.Digest) bool {
	for _, rule := range m {
		if _, ok := pathInScope(reference.Context().String(), rule.Source); ok &&
			rule.MirrorSourcePolicy == configv1.NeverContactSource {
			return true
		}
	}
	return false
}

// pathInScope returns the path of a repository within a scope, and whether the repository is in the scope.
func pathInScope(repository, scope string) (string, bool) {
	rest, ok := strings.CutPrefix(repository, scope)
	return rest, ok && (rest == "" || rest[0] == '/')
}
