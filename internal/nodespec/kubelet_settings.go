package nodespec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kubeletFields maps every field of KubeletConfiguration to the reason why Windows nodes do not follow the Linux
// workers. Fields without a reason are followed. Source of the fields: k8s.io/kubelet/config/v1beta1. A test
// compares this table with the source.
var kubeletFields = map[string]string{
	// Server and clients of the kubelet.
	"tlsCipherSuites": "", "tlsCurvePreferences": "", "tlsMinVersion": "", featureGates: "",
	"kubeAPIBurst": "", "kubeAPIQPS": "", "eventBurst": "", "eventRecordQPS": "", "streamingConnectionIdleTimeout": "",
	"enableDebugFlagsHandler": "", "enableProfilingHandler": "",
	"enableServer": reasonOperatorValue, "enableDebuggingHandlers": reasonOperatorValue, "enableSystemLogHandler": reasonOperatorValue,
	"enableSystemLogQuery": reasonOperatorValue,
	"address":              reasonOperatorValue, "port": reasonOperatorValue, "readOnlyPort": reasonOperatorValue, "healthzBindAddress": reasonOperatorValue,
	"healthzPort":    reasonOperatorValue,
	"authentication": reasonOperatorValue, "authorization": reasonOperatorValue, "rotateCertificates": reasonOperatorValue, "serverTLSBootstrap": reasonOperatorValue,
	"tlsCertFile": reasonLinuxPath, "tlsPrivateKeyFile": reasonLinuxPath, "contentType": reasonUnset, "enableContentionProfiling": reasonUnset,
	"logging": reasonOperatorValue, "tracing": "the collector of traces runs on Linux nodes only", "showHiddenMetricsForVersion": reasonUnset,

	// The node and its status.
	"maxPods": "", "podsPerCore": "", "nodeLeaseDurationSeconds": "", "nodeStatusMaxImages": "",
	"nodeStatusReportFrequency": "",
	"nodeStatusUpdateFrequency": "", "syncFrequency": "", "volumeStatsAggPeriod": "",
	"configMapAndSecretChangeDetectionStrategy": "",
	"crashLoopBackOff":                          "", "runtimeRequestTimeout": "",
	"registerNode": reasonOperatorValue, "registerWithTaints": reasonOperatorValue, "providerID": "differs for each node",
	"clusterDNS":    reasonSeparateField,
	"clusterDomain": reasonSeparateField, "containerRuntimeEndpoint": reasonOperatorValue, "imageServiceEndpoint": reasonOperatorValue, "podCIDR": reasonUnset,
	"enableControllerAttachDetach": reasonUnset, "localStorageCapacityIsolation": reasonUnset, "runOnce": reasonUnset,
	"staticPodPath": reasonLinuxPath, "staticPodURL": reasonUnset, "staticPodURLHeader": reasonUnset, "fileCheckFrequency": reasonUnset,
	"httpCheckFrequency": reasonUnset,
	"podLogsDir":         reasonLinuxPath, "resolvConf": reasonLinuxPath, "volumePluginDir": reasonLinuxPath,

	// Images, logs and garbage collection.
	"imageGCHighThresholdPercent": "", "imageGCLowThresholdPercent": "", "imageMaximumGCAge": "", "imageMinimumGCAge": "",
	"imagePullCredentialsVerificationPolicy": "", "preloadedImagesVerificationAllowlist": "", "maxParallelImagePulls": "",
	"registryBurst": "", "registryPullQPS": "", "serializeImagePulls": "",
	"containerLogMaxFiles": "", "containerLogMaxSize": "", "containerLogMaxWorkers": "", "containerLogMonitorInterval": "",
	"evictionHard": "", "evictionMinimumReclaim": "", "evictionSoft": "", "evictionSoftGracePeriod": "",
	"evictionMaxPodGracePeriod": "", "evictionPressureTransitionPeriod": "", "mergeDefaultEvictionSettings": "",

	// Resources reserved for the node.
	"systemReserved": reasonSizedForLinux, "kubeReserved": reasonSizedForLinux, "enforceNodeAllocatable": reasonCgroups, "systemReservedCgroup": reasonCgroups,
	"kubeReservedCgroup": reasonCgroups, "reservedSystemCPUs": reasonSizedForLinux, "reservedMemory": reasonSizedForLinux,
	"cpuManagerPolicy": reasonAffinity, "cpuManagerPolicyOptions": reasonAffinity, "cpuManagerReconcilePeriod": reasonAffinity,
	"memoryManagerPolicy":   reasonAffinity,
	"topologyManagerPolicy": reasonAffinity, "topologyManagerPolicyOptions": reasonAffinity, "topologyManagerScope": reasonAffinity,
	"shutdownGracePeriod": reasonShutdown, "shutdownGracePeriodByPodPriority": reasonShutdown,
	"shutdownGracePeriodCriticalPods": reasonShutdown,

	// Settings for Linux only.
	"cgroupDriver": reasonCgroups, "cgroupRoot": reasonCgroups, "cgroupsPerQOS": reasonCgroups, "failCgroupV1": reasonCgroups,
	"kernelMemcgNotification": reasonCgroups,
	"kubeletCgroups":          reasonCgroups, "memoryReservationPolicy": reasonCgroups, "memoryThrottlingFactor": reasonCgroups,
	"qosReserved":          reasonCgroups,
	"singleProcessOOMKill": reasonCgroups, "systemCgroups": reasonCgroups, "cpuCFSQuota": reasonCgroups, "cpuCFSQuotaPeriod": reasonCgroups,
	"allowedUnsafeSysctls": reasonLinuxOnly, "failSwapOn": reasonLinuxOnly, "hairpinMode": reasonLinuxOnly, "iptablesDropBit": reasonLinuxOnly,
	"iptablesMasqueradeBit": reasonLinuxOnly, "makeIPTablesUtilChains": reasonLinuxOnly, "maxOpenFiles": reasonLinuxOnly,
	"memorySwap":  reasonLinuxOnly,
	"oomScoreAdj": reasonLinuxOnly, "podPidsLimit": reasonUnlimited, "protectKernelDefaults": reasonLinuxOnly, "seccompDefault": reasonLinuxOnly,
	"userNamespaces": reasonLinuxOnly,

	// Type of the object.
	"apiVersion": reasonOperatorValue, "kind": reasonOperatorValue,
}

// Reasons why a field is not followed.
const (
	reasonOperatorValue = "set by the operator, for its checks, certificates or firewall rules"
	reasonLinuxPath     = "a Linux path"
	reasonUnset         = "not set for nodes of OpenShift; the kubelet's default applies"
	reasonSeparateField = "WorkerKubelet has a field for it"
	reasonSizedForLinux = "the sizes are for a Linux node; Windows needs more"
	reasonCgroups       = "Windows has no cgroups"
	reasonLinuxOnly     = "applies only to the Linux kernel"
	reasonAffinity      = "policies for Windows have other names and are alpha"
	reasonUnlimited     = "Windows does not limit the processes of a pod"
	reasonShutdown      = "the operator drains a node before a restart of the host; a shutdown delayed by the kubelet was not tested on Windows"
)

const featureGates = "featureGates"

// IsFollowedKubeletField reports whether Windows nodes follow a field of the workers' KubeletConfiguration, completely
// or in part.
func IsFollowedKubeletField(name string) bool {
	reason, known := kubeletFields[name]
	return known && reason == ""
}

// IsUnfollowedKubeletField reports whether Windows nodes do not follow a KubeletConfig field that is meaningful for
// them. Unknown fields of a newer kubelet are included. The machine config operator rejects the fields that
// WorkerKubelet has separately.
func IsUnfollowedKubeletField(name string) bool {
	reason, known := kubeletFields[name]
	switch {
	case !known:
		return true
	case name == "apiVersion", name == "kind":
		return false
	}
	return !slices.Contains([]string{"", reasonCgroups, reasonLinuxOnly, reasonLinuxPath, reasonSeparateField}, reason)
}

// IsReservation reports whether a field of the KubeletConfiguration reserves resources for the system.
func IsReservation(name string) bool { return kubeletFields[name] == reasonSizedForLinux }

// FollowedKubeletFields returns the followed fields, sorted.
func FollowedKubeletFields() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(kubeletFields)), func(name string) bool {
		return !IsFollowedKubeletField(name)
	})
}

// evictionSignals are the signals with the same meaning on Windows. Windows does not count inodes and process ids.
// memory.available is the remainder of the commit limit, with a default in the kubelet of five times the Linux
// default. containerfs.available must not be set. Source: k8s.io/kubernetes/pkg/kubelet/eviction.
var evictionSignals = []string{"imagefs.available", "nodefs.available"}

// kubeletSettings parses WorkerKubelet.Settings and returns the settings that Windows nodes with a version of Kubernetes
// can follow. Linux workers and Windows nodes can have different versions, so settings that the version lacks are no
// error.
func kubeletSettings(settings string, version kubernetesVersion) (object, error) {
	followed := object{}
	if settings == "" {
		return followed, nil
	}
	decoder := json.NewDecoder(strings.NewReader(settings))
	// Numbers keep their original notation.
	decoder.UseNumber()
	if err := decoder.Decode(&followed); err != nil {
		return nil, fmt.Errorf("the workers' kubelet settings are not a JSON object: %w", err)
	}
	if followed == nil || !json.Valid([]byte(settings)) {
		return nil, errors.New("the workers' kubelet settings are not a JSON object: null, or more than one object")
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(followed)) {
		if !IsFollowedKubeletField(name) {
			faults = append(faults, fmt.Errorf("unsupported kubelet setting %s of the workers", name))
			continue
		}
		if version < kubeletFieldsSince[name] {
			delete(followed, name)
			continue
		}
		keep := version.hasSettableGate
		switch name {
		case featureGates:
		case "evictionHard", "evictionMinimumReclaim", "evictionSoft", "evictionSoftGracePeriod":
			keep = func(signal string) bool { return slices.Contains(evictionSignals, signal) }
		default:
			continue
		}
		entries, ok := followed[name].(object)
		if !ok {
			faults = append(faults, fmt.Errorf("the workers' kubelet setting %s is not an object", name))
			continue
		}
		maps.DeleteFunc(entries, func(entry string, _ any) bool { return !keep(entry) })
		if len(entries) == 0 {
			delete(followed, name)
		}
	}
	return followed, errors.Join(faults...)
}
