package windows

import "strings"

// serverReleases are the marketing names of Windows Server by their build, newest first.
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

// editionNames are the words behind the release's name, by the edition without the suffix of Server Core.
var editionNames = map[string]string{
	"ServerDatacenter":     "Datacenter",
	"ServerDatacenterEval": "Datacenter Evaluation",
	"ServerStandard":       "Standard",
	"ServerStandardEval":   "Standard Evaluation",
	"ServerTurbine":        "Datacenter: Azure Edition",
}

// coreSuffix ends the edition of a Server Core installation.
const coreSuffix = "Cor"

// productName returns the marketing name of a Windows. The registry's ProductName stands when it agrees with the build:
// an upgrade in place or an image of another release may leave the name of the former one. What is no server keeps its
// name as it is.
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
