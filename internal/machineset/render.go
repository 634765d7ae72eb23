package machineset

import (
	"encoding/json"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// Render encodes a MachineSet as YAML, in the alphabetical order of the guides.
func Render(set *machinev1beta1.MachineSet) ([]byte, error) {
	object, err := nonEmptyFields(set)
	if err != nil {
		return nil, fmt.Errorf("encode MachineSet %s: %w", set.Name, err)
	}
	delete(object, "status")
	data, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode MachineSet %s: %w", set.Name, err)
	}
	return data, nil
}

// encodeProviderSpec encodes a provider spec without fields that the types write even if unset.
func encodeProviderSpec(spec any) ([]byte, error) {
	object, err := nonEmptyFields(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the provider spec: %w", err)
	}
	if _, ok := spec.(machinev1beta1.AWSMachineProviderConfig); ok {
		if object["capacityReservationId"] == "" {
			delete(object, "capacityReservationId")
		}
		// The guides include the namespace; the type has no field for it.
		if secret, ok := object["userDataSecret"].(map[string]any); ok {
			secret["namespace"] = v1alpha1.MachineNamespace
		}
	}
	return json.Marshal(object)
}

// nonEmptyFields returns the fields of an object without nulls, empty objects and empty lists. Empty texts, zero and
// false remain: the guides contain some.
func nonEmptyFields(object any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, err
	}
	pruneEmpty(result)
	return result, nil
}

// pruneEmpty removes empty values from a value, and reports whether nothing is left.
func pruneEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for key, field := range v {
			if pruneEmpty(field) {
				delete(v, key)
			}
		}
		return len(v) == 0
	case []any:
		for _, element := range v {
			pruneEmpty(element)
		}
		return len(v) == 0
	default:
		return false
	}
}
