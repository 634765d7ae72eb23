package machineset

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// shortName is the default name on platforms that limit names.
	shortName = "winworker"
	// machineSuffix is the length of the suffix in the names of a MachineSet's Machines: "-xxxxx".
	machineSuffix = 6
)

// Name returns the name of the MachineSet for the options. R-190
func Name(o Options) (string, error) {
	name := o.Name
	if name == "" {
		var err error
		if name, err = defaultName(o); err != nil {
			return "", err
		}
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("%q is not a valid MachineSet name: %s", name, strings.Join(problems, "; "))
	}
	if limit := maxNameLength(o.Platform); len(name) > limit {
		return "", fmt.Errorf("the MachineSet name %q has %d characters; on %s at most %d are allowed: "+
			"the names of the Machines, which are also their host names, have six more characters. Set a shorter name with --name",
			name, len(name), o.Platform, limit)
	}
	return name, nil
}

// maxNameLength returns the maximum length of the MachineSet's name, without the suffix of the Machine's name.
// The Machine's name is the host name, with at most 15 characters if Windows limits it, and otherwise at most
// 63 characters as for a node.
func maxNameLength(platform configv1.PlatformType) int {
	return firstNonZero(rulesOf(platform).MaxMachineNameLength, validation.DNS1123LabelMaxLength) - machineSuffix
}

func defaultName(o Options) (string, error) {
	switch o.Platform {
	case configv1.AzurePlatformType, configv1.VSpherePlatformType:
		return shortName, nil
	case configv1.AWSPlatformType, configv1.GCPPlatformType:
		zone, err := zoneOf(o)
		if err != nil {
			return "", err
		}
		if o.Platform == configv1.GCPPlatformType {
			zone = zone[strings.LastIndex(zone, "-")+1:]
		}
		return o.InfrastructureName + "-windows-worker-" + zone, nil
	default:
		return "", unsupportedPlatform(o.Platform)
	}
}

// zoneOf returns the requested zone, or the zone of the worker.
func zoneOf(o Options) (string, error) {
	if o.Zone != "" {
		return o.Zone, nil
	}
	zone, err := WorkerZone(o.Platform, o.Worker)
	if err != nil {
		return "", err
	}
	if zone == "" {
		return "", fmt.Errorf("the worker MachineSet specifies no zone. Set the zone with --zone")
	}
	return zone, nil
}
