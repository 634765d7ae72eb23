package cluster

import (
	"testing"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// withPool returns a cluster with the pool label that administrators use in selectors.
func withPool(t *testing.T) *fixture {
	f := newFixture(t)
	f.pool.Labels = map[string]string{"pools.operator.machineconfiguration.openshift.io/worker": ""}
	return f
}

func workerSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"pools.operator.machineconfiguration.openshift.io/worker": ""}}
}

func kubeletConfigWith(spec machineconfigv1.KubeletConfigSpec, fields string) *machineconfigv1.KubeletConfig {
	if spec.MachineConfigPoolSelector == nil {
		spec.MachineConfigPoolSelector = workerSelector()
	}
	if fields != "" {
		spec.KubeletConfig = &runtime.RawExtension{Raw: []byte(fields)}
	}
	return &machineconfigv1.KubeletConfig{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: spec}
}

func TestNotices_UnfollowedKubeletConfigReported(t *testing.T) {
	type spec = machineconfigv1.KubeletConfigSpec
	const reserves = "each reserves 500m of CPU, 2Gi of memory and 1Gi of disk"
	for name, c := range map[string]struct {
		spec   spec
		fields string
		want   []string
	}{
		"fields that Windows nodes follow":               {fields: `{"maxPods":100,"evictionHard":{"memory.available":"200Mi","nodefs.available":"10%"}}`},
		"fields without a meaning on Windows":            {fields: `{"cgroupDriver":"systemd","protectKernelDefaults":true,"allowedUnsafeSysctls":["a"],"staticPodPath":"/a"}`},
		"fields without a value":                         {fields: `{"systemReserved":{},"cpuManagerPolicy":"","topologyManagerPolicy":null,"reservedMemory":[]}`},
		"fields that are not an object":                  {fields: `["systemReserved"]`},
		"automatic sizes that are turned off":            {spec: spec{AutoSizingReserved: ptr.To(false)}},
		"another selector than that of the pool":         {spec: spec{LogLevel: ptr.To(int32(4)), MachineConfigPoolSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "infra"}}}},
		"an empty selector, which selects no pool":       {spec: spec{LogLevel: ptr.To(int32(4)), MachineConfigPoolSelector: &metav1.LabelSelector{}}},
		"a selector that the API server does not verify": {spec: spec{LogLevel: ptr.To(int32(4)), MachineConfigPoolSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}}},
		"automatic sizes": {spec: spec{AutoSizingReserved: ptr.To(true)},
			want: []string{"KubeletConfig large, spec.autoSizingReserved|to the size of the host|" + reserves}},
		"a log level": {spec: spec{LogLevel: ptr.To(int32(6))},
			want: []string{"KubeletConfig large, spec.logLevel|flag --debugLogging of the operator"}},
		"reservations": {fields: `{"systemReserved":{"memory":"8Gi"},"kubeReserved":{"cpu":"1"},"maxPods":100}`,
			want: []string{"KubeletConfig large, spec.kubeletConfig.kubeReserved|do not follow kubeReserved, systemReserved: " + reserves}},
		"other fields, also of a newer kubelet": {fields: `{"cpuManagerPolicy":"static","podPidsLimit":1024,"shutdownGracePeriod":"30s","futureField":1,"systemReserved":{"cpu":"2"}}`,
			want: []string{"spec.kubeletConfig.systemReserved|do not follow systemReserved: ",
				"spec.kubeletConfig.cpuManagerPolicy|do not follow cpuManagerPolicy, futureField, podPidsLimit, shutdownGracePeriod: |on Linux nodes"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := withPool(t)
			f.optional = append(f.optional, kubeletConfigWith(c.spec, c.fields))
			_, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
		})
	}
}

func TestNotices_KubeletConfigWithoutSelectorIgnored(t *testing.T) {
	f := withPool(t)
	config := kubeletConfigWith(machineconfigv1.KubeletConfigSpec{LogLevel: ptr.To(int32(4))}, "")
	config.Spec.MachineConfigPoolSelector = nil
	f.optional = append(f.optional, config)
	_, notices := f.readValid(t)
	expectNotices(t, notices)
}

func TestNotices_UnfollowedRuntimeConfigReported(t *testing.T) {
	type settings = machineconfigv1.ContainerRuntimeConfiguration
	infra := &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "infra"}}
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		settings *settings
		want     []string
	}{
		"no settings":                            {workerSelector(), nil, nil},
		"settings of Linux":                      {workerSelector(), &settings{LogLevel: "debug", DefaultRuntime: "runc"}, nil},
		"no limits":                              {workerSelector(), &settings{PidsLimit: ptr.To(int64(-1)), LogSizeMax: ptr.To(resource.MustParse("0"))}, nil},
		"another selector than that of the pool": {infra, &settings{PidsLimit: ptr.To(int64(1024))}, nil},
		"limits": {workerSelector(), &settings{PidsLimit: ptr.To(int64(1024)), LogSizeMax: ptr.To(resource.MustParse("50Mi"))}, []string{
			"ContainerRuntimeConfig limits, spec.containerRuntimeConfig.pidsLimit|do not limit the number of processes",
			"ContainerRuntimeConfig limits, spec.containerRuntimeConfig.logSizeMax|Set containerLogMaxSize in a KubeletConfig"}},
		"logs without a limit": {workerSelector(), &settings{LogSizeMax: ptr.To(resource.MustParse("-1"))}, []string{"spec.containerRuntimeConfig.logSizeMax"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := withPool(t)
			f.optional = append(f.optional, &machineconfigv1.ContainerRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "limits"},
				Spec: machineconfigv1.ContainerRuntimeConfigSpec{MachineConfigPoolSelector: c.selector, ContainerRuntimeConfig: c.settings}})
			_, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
		})
	}
}

func TestNotices_PinnedImageSetsReported(t *testing.T) {
	f := withPool(t)
	f.pool.Spec.PinnedImageSets = []machineconfigv1.PinnedImageSetRef{{Name: "release"}, {Name: "apps"}}
	_, notices := f.readValid(t)
	expectNotices(t, notices, "MachineConfigPool worker, spec.pinnedImageSets|PinnedImageSet ahead (apps, release)|Use a DaemonSet")
}
