package byoh

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/source"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
)

// fault is an invalid entry.
type fault struct {
	key string
	err error
}

// desiredInstances returns the WindowsInstances for the entries, sorted by name. An invalid entry gets an instance
// too, so that an administrator can see the fault in the status. Without a user name, the host is not changed.
func desiredInstances(namespace string, entries map[string]string) ([]v1alpha1.WindowsInstance, []fault) {
	instances := make([]v1alpha1.WindowsInstance, 0, len(entries))
	var faults []fault
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		entry, err := hostlist.ParseEntry(key, entries[key])
		var annotations map[string]string
		if err != nil {
			faults = append(faults, fault{key: key, err: err})
			entry = hostlist.Entry{Address: key}
			annotations = map[string]string{v1alpha1.AnnotationEntryFault: err.Error()}
		}
		instances = append(instances, v1alpha1.WindowsInstance{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   namespace,
				Name:        hostlist.InstanceName(key),
				Labels:      map[string]string{v1alpha1.LabelSource: v1alpha1.SourceConfigMap},
				Annotations: annotations,
			},
			Spec: v1alpha1.WindowsInstanceSpec{
				Address:         entry.Address,
				Username:        entry.Username,
				Source:          v1alpha1.Source{ConfigMapKey: key},
				DesiredState:    v1alpha1.DesiredStateNode,
				UpgradeStrategy: v1alpha1.UpgradeInPlace,
			},
		})
	}
	return instances, faults
}

// diffInstances returns the changes from the current instances to the desired instances. An undesired instance is not
// deleted but marked for removal: the instance controller restores the host and then deletes the object. An
// instance is identified by its key, and keeps its name.
func diffInstances(present, desired []v1alpha1.WindowsInstance) []source.Change {
	byKey, taken, surplus := indexByKey(present)
	var result []source.Change
	for i := range desired {
		want := &desired[i]
		have, ok := byKey[want.Spec.Source.ConfigMapKey]
		delete(byKey, want.Spec.Source.ConfigMapKey)
		if !ok {
			if taken[want.Name] {
				want.Name = hostlist.LongInstanceName(want.Spec.Source.ConfigMapKey)
			}
			taken[want.Name] = true
			result = append(result, source.Change{After: want})
			continue
		}
		spec, fault := want.Spec, want.Annotations[v1alpha1.AnnotationEntryFault]
		if spec.Username == "" {
			// An error in an entry must not break the access to a host that is already a node.
			spec.Username = have.Spec.Username
		}
		if spec.Username != "" {
			fault = ""
		}
		if change, ok := updateEntrySpec(have, spec, fault); ok {
			result = append(result, change)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		surplus = append(surplus, byKey[key])
	}
	for _, instance := range surplus {
		if change, ok := source.Remove(instance); ok {
			result = append(result, change)
		}
	}
	return result
}

// indexByKey returns the instances of the ConfigMap by key, the used names, and the surplus instances with a key of
// another instance. The source did not create surplus instances.
func indexByKey(present []v1alpha1.WindowsInstance) (byKey map[string]*v1alpha1.WindowsInstance, taken map[string]bool,
	surplus []*v1alpha1.WindowsInstance) {
	byKey, taken = make(map[string]*v1alpha1.WindowsInstance, len(present)), make(map[string]bool, len(present))
	for i := range present {
		instance := &present[i]
		taken[instance.Name] = true
		if !isListed(instance) {
			continue
		}
		key := instance.Spec.Source.ConfigMapKey
		switch first, ok := byKey[key]; {
		case !ok:
			byKey[key] = instance
		case instance.Name == hostlist.InstanceName(key):
			byKey[key], surplus = instance, append(surplus, first)
		default:
			surplus = append(surplus, instance)
		}
	}
	return byKey, taken, surplus
}

// updateEntrySpec is source.UpdateSpec that also restores the source label and the annotation for the entry's fault.
func updateEntrySpec(have *v1alpha1.WindowsInstance, spec v1alpha1.WindowsInstanceSpec, fault string) (source.Change, bool) {
	change, changed := source.UpdateSpec(have, spec)
	if have.Labels[v1alpha1.LabelSource] == v1alpha1.SourceConfigMap && have.Annotations[v1alpha1.AnnotationEntryFault] == fault {
		return change, changed
	}
	if !changed {
		change = source.Change{Before: have, After: have.DeepCopy()}
	}
	metav1.SetMetaDataLabel(&change.After.ObjectMeta, v1alpha1.LabelSource, v1alpha1.SourceConfigMap)
	if fault == "" {
		delete(change.After.Annotations, v1alpha1.AnnotationEntryFault)
	} else {
		metav1.SetMetaDataAnnotation(&change.After.ObjectMeta, v1alpha1.AnnotationEntryFault, fault)
	}
	return change, true
}

// maxHosts is the maximum number of hosts accepted from the list: the tested maximum number of nodes in a cluster.
// A writer of the list must not be able to fill the API server.
const maxHosts = 2000

// limitCreations removes the creation of instances beyond the limit, and returns a fault for each. Hosts with an
// existing instance are still changed and restored.
func limitCreations(changes []source.Change, present int) (taken []source.Change, faults []fault) {
	for _, change := range changes {
		if !change.IsCreation() {
			taken = append(taken, change)
			continue
		}
		if present >= maxHosts {
			faults = append(faults, fault{key: change.After.Spec.Source.ConfigMapKey,
				err: fmt.Errorf("the list has more than %d hosts, and this host is beyond the limit", maxHosts)})
			continue
		}
		present++
		taken = append(taken, change)
	}
	return taken, faults
}
