package nodespec

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// settingsOfNewerVersions are settings that Linux workers can have, and that not all served versions accept.
const settingsOfNewerVersions = `{"featureGates":{"WinDSR":true,"NodeLogQuery":false,"AdminNetworkPolicy":true},` +
	`"tlsCurvePreferences":[29],"crashLoopBackOff":{"maxContainerRestartPeriod":"60s"},` +
	`"imagePullCredentialsVerificationPolicy":"AlwaysVerify","maxPods":100}`

// servedVersions returns the minor versions of Kubernetes with a configuration.
func servedVersions() []string { return slices.Sorted(maps.Keys(settableGates)) }

// The modules in payload/kubernetes-* load these files with the kubelet and kube-proxy of their version. R-155
func TestKubernetes_GoldenFilesOfEachVersion(t *testing.T) {
	for _, version := range servedVersions() {
		if version == testKubernetes {
			continue // the golden files of every platform
		}
		t.Run(version, func(t *testing.T) {
			in := azureInputs()
			in.Kubernetes = version
			in.Cluster.Kubelet.Settings = settingsOfNewerVersions
			spec := mustMake(t, in)
			for file, path := range map[string]string{"kubelet.conf": kubeletConfigFile, "kube-proxy.conf": kubeProxyConfigFile} {
				compareGolden(t, filepath.Join("testdata", "kubernetes-"+version, file), fileAt(t, spec, path).Content)
			}
		})
	}
}

func TestKubernetes_SettingsOfEachVersion(t *testing.T) {
	in := testInputs()
	in.Cluster.Kubelet.Settings = settingsOfNewerVersions
	for version, want := range map[string]struct {
		gates           map[string]bool
		backOff, curves bool
	}{
		"1.33": {map[string]bool{"NodeLogQuery": true, "WinDSR": true}, false, false},
		"1.34": {map[string]bool{"NodeLogQuery": true}, false, false},
		"1.35": {map[string]bool{"NodeLogQuery": true}, true, false},
		"1.36": {nil, true, true},
		"1.37": {nil, true, true},
	} {
		t.Run(version, func(t *testing.T) {
			in.Kubernetes = version
			config := kubeletConfigOf(t, in)
			if !maps.Equal(config.FeatureGates, want.gates) {
				t.Errorf("the feature gates are %v, want %v", config.FeatureGates, want.gates)
			}
			if curves := len(config.TLSCurvePreferences) > 0; curves != want.curves || config.MaxPods != 100 ||
				(config.CrashLoopBackOff.MaxContainerRestartPeriod != nil) != want.backOff {
				t.Errorf("curves %v, %d pods", config.TLSCurvePreferences, config.MaxPods)
			}
		})
	}
}

func TestKubernetes_UnservedVersionRefused(t *testing.T) {
	for _, version := range []string{"", "1.32", "1.99", "36", "1.36.3", "latest"} {
		in := testInputs()
		in.Kubernetes = version
		if _, err := Make(in); err == nil {
			t.Errorf("a NodeSpec for Kubernetes %q", version)
		}
	}
}

func TestKubernetes_FeatureGateLists(t *testing.T) {
	if len(servedVersions()) < 5 {
		t.Fatalf("only versions %v have a list of feature gates", servedVersions())
	}
	for version, gates := range settableGates {
		if !slices.IsSorted(gates) || len(slices.Compact(slices.Clone(gates))) != len(gates) || len(gates) < 50 {
			t.Errorf("Kubernetes %s: the list of %d gates is not sorted, has a gate twice, or is not complete", version, len(gates))
		}
	}
	for gate, want := range map[string]bool{"RotateKubeletServerCertificate": true, "AllAlpha": false, "AllBeta": false,
		"AdminNetworkPolicy": false, "": false} {
		if IsSettableFeatureGate(gate) != want {
			t.Errorf("%q is settable: %v", gate, !want)
		}
	}
}
