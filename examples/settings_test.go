package examples_test

import (
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readTyped returns an example as a typed object. The type must have all fields of the example.
func readTyped[T any](t *testing.T, name string) T {
	t.Helper()
	var object T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(read(t, name).Object,
		&object, true); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestMirrors_FollowedByWindowsNodes(t *testing.T) {
	sources := map[string][]configv1.ImageMirror{}
	for _, m := range readTyped[configv1.ImageTagMirrorSet](t, "image-tag-mirror-set.yaml").Spec.ImageTagMirrors {
		sources[m.Source] = append(sources[m.Source], m.Mirrors...)
	}
	for _, m := range readTyped[configv1.ImageDigestMirrorSet](t, "image-digest-mirror-set.yaml").Spec.ImageDigestMirrors {
		sources[m.Source] = append(sources[m.Source], m.Mirrors...)
	}
	if len(sources) < 2 {
		t.Errorf("sources %v", sources)
	}
	for source, mirrors := range sources {
		for _, mirror := range mirrors {
			if _, _, _, ok := nodespec.ExpressMirror(source, string(mirror)); !ok {
				t.Errorf("containerd cannot have the mirror %s for %s", mirror, source)
			}
		}
	}
	if host, _, _ := strings.Cut(nodespec.DefaultPauseImage, "/"); sources[host] == nil {
		t.Errorf("no example mirrors %s", nodespec.DefaultPauseImage)
	}
}

func TestKubeletConfig_FollowedByWindowsNodes(t *testing.T) {
	raw := readTyped[machineconfigv1.KubeletConfig](t, "kubelet-config.yaml").Spec.KubeletConfig.Raw
	if err := yaml.UnmarshalStrict(raw, &kubeletconfigv1beta1.KubeletConfiguration{}); err != nil {
		t.Error(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil || len(fields) < 3 {
		t.Fatal(fields, err)
	}
	for field := range fields {
		if !nodespec.IsFollowedKubeletField(field) {
			t.Errorf("Windows nodes do not follow %s", field)
		}
	}
}
