package replacement

import "github.com/windows-machine-config/wmco/api/v1alpha1"

// causeLabel returns the label for why a Machine is replaced: its host has another SSH key, or is of another version of
// the operator.
func causeLabel(cause v1alpha1.DisruptionCause) string {
	if cause == v1alpha1.CauseUpgrade {
		return "version"
	}
	return "key"
}
