package windows

import "strings"

// serverReleases contains the marketing names of Windows Server by build, newest first.
// Source: "Windows Server release information", Microsoft Learn.
var serverReleases = []struct {
	build uint32
	name  string
}{
	{26100, "Windows Server 2025"},
	{25398, "Windows Server, version 23H2"},
	{20348, "Windows Server 2022"},
	{17763, "Windows Server 2019"},
	{14393, "Windows Server 2016"},
}

// editionNames maps editions, without the suffix of Server Core, to the words behind the name of the release.
var editionNames = map[string]string{
	"ServerDatacenter":     "Datacenter",
	"ServerDatacenterEval": "Datacenter Evaluation",
	"ServerStandard":       "Standard",
	"ServerStandardEval":   "Standard Evaluation",
	"ServerTurbine":        "Datacenter: Azure Edition",
}

// coreSuffix is the suffix of the edition of a Server Core installation.
const coreSuffix = "Cor"

// productName returns the marketing name of a Windows installation. It returns ProductName of the registry if that
// name matches the build. After an in-place upgrade or in an image of another release, ProductName may still contain
// the previous name. For client editions of Windows, productName always returns ProductName.
func productName(registered, edition string, build uint32, server bool) string {
	registered = strings.TrimPrefix(strings.TrimSpace(registered), "Microsoft ")
	if !server {
		return registered
	}
	for _, release := range serverReleases {
		if build != release.build {
			continue
		}
		if strings.HasPrefix(registered, release.name) {
			return registered
		}
		return strings.TrimSpace(release.name + " " + editionNames[strings.TrimSuffix(edition, coreSuffix)])
	}
	return registered
}
