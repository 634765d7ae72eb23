package windows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// exclusionProperty returns the property of MSFT_MpPreference that has the exclusions of a kind, and the parameter of
// its methods.
func exclusionProperty(kind host.ExclusionKind) (string, error) {
	switch kind {
	case host.ExcludeProcess:
		return "ExclusionProcess", nil
	case host.ExcludePath:
		return "ExclusionPath", nil
	}
	return "", fmt.Errorf("there are no exclusions of kind %q", kind)
}

// hiddenExclusions begins what Defender shows in the place of its exclusions, as their only value, when a policy hides
// them (HideExclusionsFromLocalAdmins). No path begins so.
const hiddenExclusions = "N/A:"

// exclusionsOf returns the exclusions in a property's values.
func exclusionsOf(kind host.ExclusionKind, values []string) ([]host.Exclusion, error) {
	if i := slices.IndexFunc(values, func(value string) bool {
		return strings.HasPrefix(value, hiddenExclusions)
	}); i >= 0 {
		return nil, fmt.Errorf("%w: Defender answers %q", host.ErrRefused, values[i])
	}
	var list []host.Exclusion
	for _, value := range values {
		list = append(list, host.Exclusion{Kind: kind, Value: value})
	}
	return list, nil
}

// Codes of WMI and Defender that callers tell apart.
const (
	codeWMIAccessDenied = 0x80041003 // WBEM_E_ACCESS_DENIED
	codeDefenderDenied  = 0x80070005 // E_ACCESSDENIED: Defender does not let anybody change this
	codeServiceStopped  = 0x800106ba // ERROR_MP_SERVICE_NOT_RUNNING: Defender was stopped meanwhile
)

// wmiMeaning is what a code of WMI or Defender means to callers; nil when they do not tell it apart.
func wmiMeaning(code uint32) error {
	switch code {
	case codeWMIAccessDenied, codeDefenderDenied:
		return host.ErrRefused
	case codeServiceStopped:
		return host.ErrNoAntivirus
	}
	return nil
}
