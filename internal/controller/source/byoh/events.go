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

func removalRequested(configMap *corev1.ConfigMap, instance *v1alpha1.WindowsInstance) recorder.Event {
	message := "ConfigMap " + ConfigMapName +
		" no longer lists this host: its node will be drained and removed, and the host restored to its original state."
	if instance.Status.HostKey == nil {
		message = "ConfigMap " + ConfigMapName +
			" no longer lists this host, which was never reached: nothing on it was changed."
	}
	return recorder.Normal(instance, configMap, "HostUnlisted", "RequestRemoval", message)
}

// mostNamed is the maximum number of keys that an event names.
const mostNamed = 10

// removalsWait reports that most hosts are missing from the list, and how to keep them.
func removalsWait(configMap *corev1.ConfigMap, held held, until time.Time) recorder.Event {
	return recorder.Warning(configMap, nil, "RemovalsDelayed", "RequestRemoval",
		fmt.Sprintf("The list no longer contains %d of the %d hosts that the operator has worked on (%s). Their nodes will be drained and removed, starting at %s. "+
			"To keep them, list them again before that time. Nothing has been done to them yet.",
			len(held.names), held.of, named(held.names), until.UTC().Format(time.RFC3339)))
}

// removalsStopped reports that delayed removals are canceled.
func removalsStopped(configMap *corev1.ConfigMap, held held) recorder.Event {
	return recorder.Normal(configMap, nil, "RemovalsCanceled", "RequestRemoval",
		fmt.Sprintf("Most hosts are listed again: the pending removal of %d hosts (%s) is canceled. Only hosts that are still missing from the list are removed.",
			len(held.names), named(held.names)))
}

// named formats the first names of the instances.
func named(instances map[string]bool) string {
	names := slices.Sorted(maps.Keys(instances))
	more := ""
	if n := len(names) - mostNamed; n > 0 {
		names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// entryInvalid also refers to the instance of the entry, because two events about one object with the same reason
// are otherwise merged.
func entryInvalid(configMap *corev1.ConfigMap, fault fault) recorder.Event {
	instance := &v1alpha1.WindowsInstance{ObjectMeta: metav1.ObjectMeta{Namespace: configMap.Namespace,
		Name: hostlist.InstanceName(fault.key)}}
	return recorder.Warning(configMap, instance, "InvalidEntry", "ParseEntry",
		"Key "+fault.key+": "+fault.err.Error()+". Other entries are not affected.")
}

// moreInvalid summarizes invalid entries without a separate event.
func moreInvalid(configMap *corev1.ConfigMap, more int) recorder.Event {
	return recorder.Warning(configMap, nil, "InvalidEntry", "ParseEntry",
		fmt.Sprintf("%d more entries cannot be used: see the WindowsInstances with STATUS %s. Other entries are not affected.", more, v1alpha1.ReasonInvalidEntry))
}
