// Gencrds copies the CustomResourceDefinitions of the profile openshift unchanged from the modules that publish
// them to ./crds. To update to a newer version, edit the version here and run `go generate ./openshift`.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

type source struct {
	module, version string
	files           []string
}

var sources = []source{
	{"github.com/openshift/api", "v0.0.0-20260729135743-72624b98ff3d", []string{
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_03_config-operator_01_proxies.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_clusterimagepolicies.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagepolicies.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_images.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagetagmirrorsets.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_networks-Default.crd.yaml",
		"machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinehealthchecks.crd.yaml",
		"machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machines-Default.crd.yaml",
		"machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinesets-Default.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_containerruntimeconfigs-Default.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_controllerconfigs-Default.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_kubeletconfigs-Default.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigpools-SelfManagedHA.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_70_network_01_networks-Default.crd.yaml",
		"operator/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigurations-Default.crd.yaml",
		"operator/v1alpha1/zz_generated.crd-manifests/0000_10_config-operator_01_imagecontentsourcepolicies.crd.yaml",
	}},
	{"github.com/prometheus-operator/prometheus-operator", "v0.87.1", []string{
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	}},
	{"github.com/operator-framework/api", "v0.41.0", []string{
		"crds/operators.coreos.com_operatorconditions.yaml",
		"crds/operators.coreos.com_operatorgroups.yaml",
		"crds/operators.coreos.com_subscriptions.yaml",
	}},
}

func main() {
	if err := generate("crds"); err != nil {
		fmt.Fprintln(os.Stderr, "gencrds:", err)
		os.Exit(1)
	}
}

// generate replaces the content of dir.
func generate(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, s := range sources {
		root, err := download(s.module + "@" + s.version)
		if err != nil {
			return err
		}
		for _, file := range s.files {
			if err := copyCRD(filepath.Join(root, file), dir); err != nil {
				return fmt.Errorf("%s@%s: %w", s.module, s.version, err)
			}
		}
	}
	return nil
}

// download returns the directory of the module in the module cache.
func download(module string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = os.TempDir() // outside of any module, to ignore go.mod files
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	return downloaded.Dir, nil
}

// copyCRD writes the definition to <dir>/<plural>.<group>.yaml.
func copyCRD(from, dir string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var crd struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("parse %s: %w", from, err)
	}
	if crd.Kind != "CustomResourceDefinition" || crd.Metadata.Name == "" {
		return fmt.Errorf("%s is no CustomResourceDefinition", from)
	}
	return os.WriteFile(filepath.Join(dir, crd.Metadata.Name+".yaml"), data, 0o644)
}
