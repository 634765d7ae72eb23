package machineset

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// shortName is the name where the platform limits names.
	shortName = "winworker"
	// machineSuffix is the length of what a MachineSet adds to its name for that of a Machine: "-xxxxx".
	machineSuffix = 6
)

// Name returns the name of the MachineSet that the options ask for. R-190
func Name(o Options) (string, error) {
	name := o.Name
	if name == "" {
		var err error
		if name, err = defaultName(o); err != nil {
			return "", err
		}
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("%q cannot be the name of the MachineSet: %s", name, strings.Join(problems, "; "))
	}
	if limit := limitOfName(o.Platform); len(name) > limit {
		return "", fmt.Errorf("the name %q of the MachineSet has %d characters; on %s it can have at most %d: "+
			"the names of its Machines, which are also their host names, have six more. Set a shorter name with --name",
			name, len(name), o.Platform, limit)
	}
	return name, nil
}

// limitOfName leaves room for the suffix in the Machine's name, which is the host name where Windows limits it, and
// else at most that of a node: 15 and 63 characters.
func limitOfName(platform configv1.PlatformType) int {
	return or(rulesOf(platform).MachineNameLimit, validation.DNS1123LabelMaxLength) - machineSuffix
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

// zoneOf returns the zone that is asked for, or that of the worker.
func zoneOf(o Options) (string, error) {
	if o.Zone != "" {
		return o.Zone, nil
	}
	zone, err := WorkerZone(o.Platform, o.Worker)
	if err != nil {
		return "", err
	}
	if zone == "" {
		return "", fmt.Errorf("the zone is not known: the worker MachineSet names none. Set it with --zone")
	}
	return zone, nil
}
