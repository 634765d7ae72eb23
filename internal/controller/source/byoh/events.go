package byoh

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
)

func hostUnlisted(configMap *corev1.ConfigMap, instance *v1alpha1.WindowsInstance) recorder.Event {
	message := "ConfigMap " + ConfigMapName +
		" no longer lists this host: its node will be drained and removed, and the host restored to its original state."
	if instance.Status.HostKey == nil {
		message = "ConfigMap " + ConfigMapName +
			" no longer lists this host, which was never reached: nothing on it was changed."
	}
	return recorder.Normal(instance, configMap, "HostUnlisted", "RequestRemoval", message)
}

// maxNamedKeys is the maximum number of keys that an event names.
const maxNamedKeys = 10

// removalsDelayed reports that most hosts are missing from the list, and how to keep them.
func removalsDelayed(configMap *corev1.ConfigMap, held heldRemovals, until time.Time) recorder.Event {
	return recorder.Warning(configMap, nil, "RemovalsDelayed", "RequestRemoval",
		fmt.Sprintf("The list no longer contains %d of the %d hosts that the operator has worked on (%s). Their nodes will be drained and removed, starting at %s. "+
			"To keep them, list them again before that time. They have not been changed yet.",
			len(held.names), held.hostCount, formatNames(held.names), until.UTC().Format(time.RFC3339)))
}

// removalsCanceled reports that delayed removals are canceled.
func removalsCanceled(configMap *corev1.ConfigMap, held heldRemovals) recorder.Event {
	return recorder.Normal(configMap, nil, "RemovalsCanceled", "RequestRemoval",
		fmt.Sprintf("Most hosts are listed again: the pending removal of %d hosts (%s) is canceled. Only hosts that are still missing from the list are removed.",
			len(held.names), formatNames(held.names)))
}

// formatNames formats the first names of the instances.
func formatNames(instances map[string]bool) string {
	names := slices.Sorted(maps.Keys(instances))
	more := ""
	if n := len(names) - maxNamedKeys; n > 0 {
		names, more = names[:maxNamedKeys], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// invalidEntry also refers to the instance of the entry, because two events about one object with the same reason
// are otherwise merged.
func invalidEntry(configMap *corev1.ConfigMap, fault fault) recorder.Event {
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: configMap.Namespace,
		Name: hostlist.InstanceName(fault.key)}}
	return recorder.Warning(configMap, instance, "InvalidEntry", "ParseEntry",
		"Key "+fault.key+": "+fault.err.Error()+". Other entries are not affected.")
}

// moreInvalidEntries summarizes invalid entries without a separate event.
func moreInvalidEntries(configMap *corev1.ConfigMap, more int) recorder.Event {
	return recorder.Warning(configMap, nil, "InvalidEntry", "ParseEntry",
		fmt.Sprintf("%d more entries cannot be used: see the WindowsInstances with STATUS %s. Other entries are not affected.", more, v1alpha1.ReasonInvalidEntry))
}
