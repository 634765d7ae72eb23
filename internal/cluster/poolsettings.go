package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readPoolSettings reports the settings of the pool of Linux workers that its rendered configuration does not
// transfer to Windows nodes. The source is the objects of administrators, not the rendered files: a file does
// not distinguish values set by an administrator from defaults of the release.
func (n *notices) readPoolSettings(ctx context.Context, reader client.Reader, pool *machineconfigv1.MachineConfigPool) error {
	n.reportPinnedImages(pool)
	if err := n.readKubeletConfigs(ctx, reader, pool); err != nil {
		return err
	}
	return n.readRuntimeConfigs(ctx, reader, pool)
}

// reportPinnedImages reports the PinnedImageSets of the pool. The machine config operator lists them in the
// pool.
func (n *notices) reportPinnedImages(pool *machineconfigv1.MachineConfigPool) {
	var sets []string
	for _, set := range pool.Spec.PinnedImageSets {
		sets = append(sets, set.Name)
	}
	if len(sets) == 0 {
		return
	}
	slices.Sort(sets)
	n.addNotice(subject{workerPoolID, pool.ResourceVersion}, "spec.pinnedImageSets", fmt.Sprintf(
		"Windows nodes do not pull the images of a PinnedImageSet ahead (%s): they pull an image when the first pod needs it, and may delete it when no pod uses it. "+
			"Use a DaemonSet to keep images on Windows nodes.", listNames(sets, maxNames)))
}

// maxNames is the maximum number of names in a message.
const maxNames = 8

func (n *notices) readKubeletConfigs(ctx context.Context, reader client.Reader, pool *machineconfigv1.MachineConfigPool) error {
	list := &machineconfigv1.KubeletConfigList{}
	if err := listOptional(ctx, reader, list, "KubeletConfig"); err != nil {
		return err
	}
	for _, config := range byName(list.Items, func(c machineconfigv1.KubeletConfig) string { return c.Name }) {
		if isPoolSelected(config.Spec.MachineConfigPoolSelector, pool) {
			n.reportKubeletConfig(config)
		}
	}
	return nil
}

// reportKubeletConfig reports the settings of a KubeletConfig that Windows nodes do not follow although they
// are meaningful there.
func (n *notices) reportKubeletConfig(config machineconfigv1.KubeletConfig) {
	about := subject{"KubeletConfig " + config.Name, config.ResourceVersion}
	if sizing := config.Spec.AutoSizingReserved; sizing != nil && *sizing {
		n.addNotice(about, "spec.autoSizingReserved", "Windows nodes do not adapt reserved resources to the size of the host: "+reserved)
	}
	if config.Spec.LogLevel != nil {
		n.addNotice(about, "spec.logLevel",
			"Windows nodes do not follow it: all services of Windows nodes have log level 2, or 4 with the flag --debugLogging of the operator. Set that flag for more logs.")
	}
	var reservations, others []string
	for _, field := range setFields(config.Spec.KubeletConfig) {
		switch {
		case nodespec.IsReservation(field):
			reservations = append(reservations, field)
		case nodespec.IsUnfollowedKubeletField(field):
			others = append(others, field)
		}
	}
	// Notices of one object need different fields, or their events become one.
	const parent = "spec.kubeletConfig."
	if len(reservations) > 0 {
		n.addNotice(about, parent+formatExcerpt(reservations[0]), fmt.Sprintf("Windows nodes do not follow %s: %s", listNames(reservations, maxNames), reserved))
	}
	if len(others) > 0 {
		n.addNotice(about, parent+formatExcerpt(others[0]), fmt.Sprintf("Windows nodes do not follow %s: they have the values of the operator or the defaults of the kubelet. "+
			"Run pods that depend on these settings on Linux nodes.", listNames(others, maxNames)))
	}
}

// reserved describes the resources that Windows nodes reserve, regardless of the setting.
const reserved = "each reserves " + nodespec.ReservedCPU + " of CPU, " + nodespec.ReservedMemory + " of memory and " + nodespec.ReservedStorage +
	" of disk. If Windows needs more on large hosts, run fewer pods there: set maxPods or podsPerCore."

// setFields returns the sorted names of the fields with a value. The machine config operator rejects a
// KubeletConfig that is not an object.
func setFields(raw *runtime.RawExtension) []string {
	var fields map[string]json.RawMessage
	if raw == nil || json.Unmarshal(raw.Raw, &fields) != nil {
		return nil
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool {
		return slices.Contains([]string{"null", "{}", "[]", `""`}, string(value))
	})
	return slices.Sorted(maps.Keys(fields))
}

func (n *notices) readRuntimeConfigs(ctx context.Context, reader client.Reader, pool *machineconfigv1.MachineConfigPool) error {
	list := &machineconfigv1.ContainerRuntimeConfigList{}
	if err := listOptional(ctx, reader, list, "ContainerRuntimeConfig"); err != nil {
		return err
	}
	for _, config := range byName(list.Items, func(c machineconfigv1.ContainerRuntimeConfig) string { return c.Name }) {
		settings := config.Spec.ContainerRuntimeConfig
		if settings == nil || !isPoolSelected(config.Spec.MachineConfigPoolSelector, pool) {
			continue
		}
		about := subject{"ContainerRuntimeConfig " + config.Name, config.ResourceVersion}
		if settings.PidsLimit != nil && *settings.PidsLimit > 0 {
			n.addNotice(about, "spec.containerRuntimeConfig.pidsLimit",
				"Windows nodes do not limit the number of processes of a container. Limit the CPU and the memory of pods on Windows nodes.")
		}
		if settings.LogSizeMax != nil && !settings.LogSizeMax.IsZero() {
			n.addNotice(about, "spec.containerRuntimeConfig.logSizeMax",
				"Windows nodes do not follow it: there, the kubelet limits the logs of containers. Set containerLogMaxSize in a KubeletConfig for the pool worker.")
		}
	}
	return nil
}

// isPoolSelected reports whether a setting applies to the pool. As in the machine config operator, an empty
// selector matches no pool, and an invalid selector is not applied.
func isPoolSelected(selector *metav1.LabelSelector, pool *machineconfigv1.MachineConfigPool) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !parsed.Empty() && parsed.Matches(labels.Set(pool.Labels))
}
