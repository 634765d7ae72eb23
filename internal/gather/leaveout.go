package gather

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leftOut replaces a removed value.
const leftOut = "(left out)"

// leaveOut removes possible secrets from an object that is no Secret: the values of environment variables,
// arguments, and kubectl apply's copy of both. Managed fields are removed as noise.
func leaveOut(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	if _, kept := annotations[corev1.LastAppliedConfigAnnotation]; kept {
		annotations[corev1.LastAppliedConfigAnnotation] = leftOut
		object.SetAnnotations(annotations)
	}
	leaveOutBelow(object.Object)
}

func leaveOutBelow(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			leaveOutBelow(element)
		}
	case map[string]any:
		for key, below := range value {
			entries, isList := below.([]any)
			switch {
			case key == "env" && isList:
				for _, entry := range entries {
					if variable, ok := entry.(map[string]any); ok && variable["value"] != nil {
						variable["value"] = leftOut
					}
				}
			case (key == "args" || key == "command") && isList:
				value[key] = []any{leftOut}
			default:
				leaveOutBelow(below)
			}
		}
	}
}
