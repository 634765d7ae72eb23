package replacement

import "github.com/windows-machine-config/wmco/api/v1alpha1"

// causeLabel returns the metric label for the cause of a replacement: another SSH key or another operator version.
func causeLabel(cause v1alpha1.DisruptionCause) string {
	if cause == v1alpha1.CauseUpgrade {
		return "version"
	}
	return "key"
}
