package machineset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// Versions lists the available Windows Server versions; the first is the default.
var Versions = []string{"2022", "2019", "2025"}

// CheckSupported returns an error for a platform without Windows Machines, and for a version that the platform does
// not support according to support.Platforms.
func CheckSupported(platform configv1.PlatformType, version string) error {
	if !slices.Contains(Versions, version) {
		return fmt.Errorf("unknown version %q: the versions of Windows Server are 2019, 2022 and 2025", version)
	}
	if _, ok := platforms[platform]; !ok {
		return unsupportedPlatform(platform)
	}
	release := releaseName(version)
	rules := rulesOf(platform)
	if slices.Contains(rules.Windows, release) {
		return nil
	}
	return fmt.Errorf("%s is not supported on platform %s: use %s", release, platform,
		strings.Join(rules.Windows, " or "))
}

// releaseName returns the name of a Windows Server version in package support.
func releaseName(version string) string { return "Windows Server " + version }

// rulesOf returns the rules of a platform; the rules of an unknown platform are empty and allow nothing.
func rulesOf(platform configv1.PlatformType) support.Platform {
	for _, rules := range support.Platforms() {
		if rules.Name == string(platform) {
			return rules
		}
	}
	return support.Platform{}
}

var amiPattern = regexp.MustCompile(`^ami-([0-9a-f]{8}|[0-9a-f]{17})$`)

// AMICommand returns the command that lists the images of a Windows version on AWS, newest first. R-191
func AMICommand(region, version string) string {
	return fmt.Sprintf(`aws ec2 describe-images --region %s --filters "Name=name,Values=%s" "Name=is-public,Values=true" `+
		`--query "reverse(sort_by(Images, &CreationDate))[*].{name: Name, id: ImageId}" --output table`, region,
		AMINamePattern(version))
}

// AMINamePattern returns a pattern for the names of Amazon's images of a Windows version.
func AMINamePattern(version string) string {
	return "Windows_Server-" + version + "*English*Core*Base*"
}

func amazonImage(o Options, region string) (string, error) {
	if o.Image == "" {
		return "", fmt.Errorf("on AWS, specify the image with --image ami-…; list images with:\n  %s",
			AMICommand(region, o.Version))
	}
	if !amiPattern.MatchString(o.Image) {
		return "", fmt.Errorf("%q is not an AMI ID such as ami-0123456789abcdef0; list images with:\n  %s",
			o.Image, AMICommand(region, o.Version))
	}
	return o.Image, nil
}

// azureSKUs holds images of Microsoft for virtual machines of generation 1, which the size in the guides can
// boot. Only the image of 2019 includes the feature Containers. On all other images the operator enables the
// feature, which requires a restart.
var azureSKUs = map[string]string{
	"2019": "2019-Datacenter-with-Containers",
	"2022": "2022-datacenter-core",
	"2025": "2025-datacenter-core",
}

func azureImage(o Options) (machinev1beta1.Image, error) {
	if o.Image == "" {
		return machinev1beta1.Image{
			Publisher: "MicrosoftWindowsServer", Offer: "WindowsServer", SKU: azureSKUs[o.Version], Version: "latest",
		}, nil
	}
	if strings.HasPrefix(o.Image, "/") {
		return machinev1beta1.Image{ResourceID: o.Image}, nil
	}
	parts := strings.Split(o.Image, ":")
	if len(parts) != 4 || slices.Contains(parts, "") {
		return machinev1beta1.Image{},
			fmt.Errorf("%q is not an image on Azure: use publisher:offer:sku:version, or a resource ID that begins with /. "+
				"List the images of Microsoft with: az vm image list --all --publisher MicrosoftWindowsServer --offer WindowsServer --output table", o.Image)
	}
	return machinev1beta1.Image{Publisher: parts[0], Offer: parts[1], SKU: parts[2], Version: parts[3]}, nil
}

func googleImage(o Options) (string, error) {
	if o.Image == "" {
		return "projects/windows-cloud/global/images/family/windows-" + o.Version + "-core", nil
	}
	if !strings.Contains(o.Image, "projects/") || !strings.Contains(o.Image, "/images/") {
		return "", fmt.Errorf("%q is not an image on GCP: use the full path, such as projects/windows-cloud/global/images/family/windows-2022-core. "+
			"List the images of Google with: gcloud compute images list --project windows-cloud --no-standard-images", o.Image)
	}
	return o.Image, nil
}

func vsphereTemplate(o Options) (string, error) {
	if o.Image == "" {
		return "", fmt.Errorf("on vSphere, specify the template with --template: the full path of a template created as described in docs/vsphere.md")
	}
	return o.Image, nil
}
