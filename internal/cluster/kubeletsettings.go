package cluster

import (
	"encoding/json"
	"errors"
	"fmt"

	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// kubeletSettings returns the fields of the workers' KubeletConfiguration that Windows nodes follow, as JSON
// with sorted keys. Changes of other fields do not affect Windows nodes. R-100
func kubeletSettings(configuration []byte) (string, error) {
	var all map[string]json.RawMessage
	if err := yaml.Unmarshal(configuration, &all); err != nil {
		return "", fmt.Errorf("it is not a KubeletConfiguration in YAML: %w", err)
	}
	followed := map[string]json.RawMessage{}
	for field, value := range all {
		if nodespec.IsFollowedKubeletField(field) && string(value) != "null" {
			followed[field] = value
		}
	}
	const gatesField = "featureGates"
	if gates, found := followed[gatesField]; found {
		delete(followed, gatesField)
		known, err := knownGates(gates)
		if err != nil {
			return "", err
		}
		if known != nil {
			followed[gatesField] = known
		}
	}
	if len(followed) == 0 {
		return "", nil
	}
	encoded, err := json.Marshal(followed)
	if err != nil {
		return "", fmt.Errorf("encode the workers' kubelet settings: %w", err)
	}
	// A value of the wrong type would keep every kubelet from starting.
	if err := json.Unmarshal(encoded, &kubeletconfigv1beta1.KubeletConfiguration{}); err != nil {
		return "", fmt.Errorf("it is not a KubeletConfiguration: %w", err)
	}
	return string(encoded), nil
}

// knownGates returns the feature gates known to the kubelet of Windows nodes; nil for none.
func knownGates(value json.RawMessage) (json.RawMessage, error) {
	var gates map[string]bool
	if err := json.Unmarshal(value, &gates); err != nil {
		return nil, errors.New("featureGates does not map each gate to true or false")
	}
	for gate := range gates {
		if !nodespec.IsSettableFeatureGate(gate) {
			delete(gates, gate)
		}
	}
	if len(gates) == 0 {
		return nil, nil
	}
	return json.Marshal(gates)
}
