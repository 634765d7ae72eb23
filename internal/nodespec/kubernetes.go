package nodespec

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gateLists contains the feature gates of each served minor version of Kubernetes. A kubelet does not start with an
// unknown feature gate, or with another value of a locked gate. Each list comes from the kubelet of that version: all
// gates that are not locked, except AllAlpha and AllBeta, which would enable more than the workers' setting.
//
//go:embed featuregates/*.txt
var gateLists embed.FS

// settableGates maps minor versions of Kubernetes to their settable feature gates.
var settableGates = readGateLists()

func readGateLists() map[string][]string {
	entries, err := gateLists.ReadDir("featuregates")
	if err != nil {
		panic("read the embedded lists of feature gates: " + err.Error())
	}
	lists := map[string][]string{}
	for _, entry := range entries {
		data, err := gateLists.ReadFile("featuregates/" + entry.Name())
		if err != nil {
			panic("read the embedded lists of feature gates: " + err.Error())
		}
		lists[strings.TrimSuffix(entry.Name(), ".txt")] = strings.Fields(string(data))
	}
	return lists
}

// IsSettableFeatureGate reports whether the kubelet of any served minor version of Kubernetes has the feature gate and
// allows it to be set.
func IsSettableFeatureGate(name string) bool {
	for _, gates := range settableGates {
		if slices.Contains(gates, name) {
			return true
		}
	}
	return false
}

// kubernetesVersion is a served minor version of Kubernetes: 36 for 1.36.
type kubernetesVersion int

// parseKubernetes parses a minor version such as "1.36". Versions without a list of feature gates are not served.
func parseKubernetes(text string) (kubernetesVersion, error) {
	_, minor, _ := strings.Cut(text, ".")
	number, err := strconv.Atoi(minor)
	if err != nil || settableGates[text] == nil {
		return 0, fmt.Errorf("there is no configuration for nodes of Kubernetes %q", text)
	}
	return kubernetesVersion(number), nil
}

func (v kubernetesVersion) hasSettableGate(name string) bool {
	return slices.Contains(settableGates[fmt.Sprintf("1.%d", v)], name)
}

// Minor versions of Kubernetes with a change that the configuration of nodes depends on.
const (
	// lockedLogQuery is the first version in which the logs of services can be queried without a feature gate.
	lockedLogQuery kubernetesVersion = 36
	// ungatedBackOff is the first version that accepts settings of crash loops and of the verification of pull
	// credentials without a feature gate.
	ungatedBackOff kubernetesVersion = 35
	// tlsCurves is the first version with the field tlsCurvePreferences.
	tlsCurves kubernetesVersion = 36
)

// kubeletFieldsSince maps followed fields of KubeletConfiguration to the first served version that accepts the field
// without a feature gate. Fields of all served versions are not listed. Source: k8s.io/kubelet/config/v1beta1, and the
// kubelet's validation, of these versions.
var kubeletFieldsSince = map[string]kubernetesVersion{
	"crashLoopBackOff": ungatedBackOff, "imagePullCredentialsVerificationPolicy": ungatedBackOff,
	"preloadedImagesVerificationAllowlist": ungatedBackOff, "tlsCurvePreferences": tlsCurves,
}
