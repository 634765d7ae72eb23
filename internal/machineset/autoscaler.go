package machineset

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// The cluster autoscaler builds the node of an empty MachineSet from these annotations. Without them the
// autoscaler assumes a Linux node, and never scales the MachineSet up from zero. Source: kubernetes/autoscaler,
// cluster-autoscaler/cloudprovider/clusterapi/README.md. The Machine API adds the annotations for processors
// and memory, and keeps the labels of this annotation when it adds the label of the architecture.
const (
	annotationCapacityLabels = "capacity.cluster-autoscaler.kubernetes.io/labels"
	annotationCapacityTaints = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// capacityAnnotations returns the annotations that describe a node of a Windows Server version to the cluster
// autoscaler.
func capacityAnnotations(version string) map[string]string {
	labels := []string{corev1.LabelArchStable + "=amd64", corev1.LabelOSStable + "=windows"}
	for _, release := range support.WindowsReleases() {
		if release.Name == releaseName(version) {
			labels = append(labels, corev1.LabelWindowsBuild+"="+release.Version)
		}
	}
	labels = append(labels, v1alpha1.LabelOSID+"="+v1alpha1.MachineOSIDWindows)
	taint := nodespec.WindowsTaint()
	return map[string]string{
		annotationCapacityLabels: strings.Join(labels, ","),
		annotationCapacityTaints: taint.Key + "=" + taint.Value + ":" + taint.Effect,
	}
}
