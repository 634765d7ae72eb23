package gather

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// redactedValue replaces a removed value.
const redactedValue = "(left out)"

// redactObject removes possible secrets from an object that is no Secret: the values of environment variables,
// arguments, and kubectl apply's copy of both. Managed fields are removed as noise.
func redactObject(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	if _, kept := annotations[corev1.LastAppliedConfigAnnotation]; kept {
		annotations[corev1.LastAppliedConfigAnnotation] = redactedValue
		object.SetAnnotations(annotations)
	}
	redactValue(object.Object)
}

func redactValue(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			redactValue(element)
		}
	case map[string]any:
		for key, below := range value {
			entries, isList := below.([]any)
			switch {
			case key == "env" && isList:
				for _, entry := range entries {
					if variable, ok := entry.(map[string]any); ok && variable["value"] != nil {
						variable["value"] = redactedValue
					}
				}
			case (key == "args" || key == "command") && isList:
				value[key] = []any{redactedValue}
			default:
				redactValue(below)
			}
		}
	}
}
