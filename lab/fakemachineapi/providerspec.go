package fakemachineapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// providerSpec contains the common fields of the platforms' configurations.
type providerSpec struct {
	Image, InstanceType, Region, Zone, Subnet string
	// Group is the resource group on Azure and the project on GCP.
	Group string
	// UserDataSecret is the name of a Secret in the Machine's namespace, "" for none.
	UserDataSecret string
}

// readProviderSpec reads the platforms' fields without their types and ignores unknown fields. An error means
// that no virtual machine can be created. A platform without a cloud accepts every form.
func readProviderSpec(platform string, raw *runtime.RawExtension) (providerSpec, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return providerSpec{}, errors.New("spec.providerSpec.value is missing")
	}
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return providerSpec{}, fmt.Errorf("spec.providerSpec.value is not an object: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return providerSpec{}, errors.New("spec.providerSpec.value is not an object")
	}
	at := func(path ...string) string { return stringAt(value, path...) }
	spec := providerSpec{UserDataSecret: at("userDataSecret", "name")}
	switch platform {
	case "AWS":
		spec.Image = at("ami", "id")
	case "Azure":
		spec.Image = azureImage(value)
	case "GCP":
		spec.Image = at("disks", "0", "image")
	case "Nutanix":
		spec.Image = cmp.Or(at("image", "name"), at("image", "uuid"))
	case "VSphere":
		spec.Image = at("template")
	default:
		spec.Image = cmp.Or(at("ami", "id"), azureImage(value), at("image", "name"), at("image", "uuid"), at("template"),
			at("disks", "0", "image"))
	}
	if spec.Image == "" {
		return providerSpec{}, fmt.Errorf("spec.providerSpec.value names no image as %s has it: set %s",
			cmp.Or(platform, "the platform"), imageField(platform))
	}
	spec.InstanceType = cmp.Or(at("instanceType"), at("vmSize"), at("machineType"))
	spec.Region = cmp.Or(at("placement", "region"), at("region"), at("location"))
	spec.Zone = cmp.Or(at("placement", "availabilityZone"), at("zone"))
	if platform == "AWS" && spec.Zone == "" {
		spec.Zone = spec.Region + "a" // With a region only, AWS selects the zone.
	}
	spec.Subnet = at("subnet", "filters", "0", "values", "0")
	spec.Group = cmp.Or(at("resourceGroup"), at("projectID"))
	return spec, nil
}

func azureImage(value any) string {
	if offer := stringAt(value, "image", "offer"); offer != "" {
		return offer + ":" + stringAt(value, "image", "sku")
	}
	return stringAt(value, "image", "resourceID")
}

func imageField(platform string) string {
	switch platform {
	case "AWS":
		return "ami.id"
	case "Azure":
		return "image.offer and image.sku, or image.resourceID"
	case "GCP":
		return "disks[0].image"
	case "Nutanix":
		return "image.name or image.uuid"
	case "VSphere":
		return "template"
	default:
		return "ami.id, image, template or disks[0].image"
	}
}

// stringAt returns the string at the path, "" if it does not exist. A number in the path is an index.
func stringAt(value any, path ...string) string {
	for _, step := range path {
		switch container := value.(type) {
		case map[string]any:
			value = container[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(container) {
				return ""
			}
			value = container[i]
		default:
			return ""
		}
	}
	s, _ := value.(string)
	return s
}
