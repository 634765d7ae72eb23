package testenv

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windows-machine-config/wmco/lab/fakemachineapi"
)

// Zone returns the zone of the host's virtual machine; "" for BYOH hosts and for platforms without zones.
func (h *Host) Zone() string {
	if h.vm == nil {
		return ""
	}
	return h.vm.spec.Zone
}

// setZone sets the zone in the platform's providerSpec; "" changes nothing.
func setZone(platform string, value map[string]any, zone string) error {
	switch {
	case zone == "":
		return nil
	case platform == platformAWS:
		return errors.Join(setSubnet(value, zone), unstructured.SetNestedField(value, zone, "placement", "availabilityZone"))
	case platform == platformAzure, platform == platformGCP:
		return unstructured.SetNestedField(value, zone, "zone")
	}
	return fmt.Errorf("the providerSpec of platform %s has no zone", platform)
}

// setSubnet selects the subnet of another zone. On AWS each subnet is in one zone, and the installer appends the zone
// to the name of the subnet.
func setSubnet(value map[string]any, zone string) error {
	filters, _, err := unstructured.NestedSlice(value, "subnet", "filters")
	if err != nil {
		return err
	}
	before, _, err := unstructured.NestedString(value, "placement", "availabilityZone")
	if err != nil {
		return err
	}
	for _, each := range filters {
		filter, ok := each.(map[string]any)
		if !ok {
			continue
		}
		names, _, err := unstructured.NestedStringSlice(filter, "values")
		if err != nil {
			return err
		}
		for i := range names {
			names[i] = strings.TrimSuffix(names[i], before) + zone
		}
		if err := unstructured.SetNestedStringSlice(filter, names, "values"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(value, filters, "subnet", "filters")
}

// checkSubnet refuses a subnet of another zone, because AWS finds no subnet of the name in the zone.
func checkSubnet(spec fakemachineapi.VirtualMachine) error {
	if spec.Platform != platformAWS || spec.Subnet == "" || strings.HasSuffix(spec.Subnet, "-"+spec.Zone) {
		return nil
	}
	return fmt.Errorf("error launching instance: no subnet IDs were found: subnet %s is not in zone %s",
		spec.Subnet, spec.Zone)
}
