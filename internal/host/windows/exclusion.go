package windows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// exclusionProperty returns the name of the MSFT_MpPreference property, and of the method parameter, for exclusions
// of a kind.
func exclusionProperty(kind host.ExclusionKind) (string, error) {
	switch kind {
	case host.ExcludeProcess:
		return "ExclusionProcess", nil
	case host.ExcludePath:
		return "ExclusionPath", nil
	}
	return "", fmt.Errorf("unknown kind of exclusions %q", kind)
}

// hiddenExclusions is the prefix of the only value that Defender returns if a policy hides the exclusions
// (HideExclusionsFromLocalAdmins). No path has this prefix.
const hiddenExclusions = "N/A:"

// exclusionsOf returns the exclusions in the values of a property.
func exclusionsOf(kind host.ExclusionKind, values []string) ([]host.Exclusion, error) {
	if i := slices.IndexFunc(values, func(value string) bool {
		return strings.HasPrefix(value, hiddenExclusions)
	}); i >= 0 {
		return nil, fmt.Errorf("%w: Defender returned %q", host.ErrRefused, values[i])
	}
	var list []host.Exclusion
	for _, value := range values {
		list = append(list, host.Exclusion{Kind: kind, Value: value})
	}
	return list, nil
}

// Codes of WMI and Defender that callers distinguish.
const (
	codeWMIAccessDenied = 0x80041003 // WBEM_E_ACCESS_DENIED
	codeDefenderDenied  = 0x80070005 // E_ACCESSDENIED: Defender denies the change
	codeServiceStopped  = 0x800106ba // ERROR_MP_SERVICE_NOT_RUNNING: Defender was stopped in the meantime
)

// wmiMeaning returns the host error for a code of WMI or Defender, or nil if callers do not distinguish the code.
func wmiMeaning(code uint32) error {
	switch code {
	case codeWMIAccessDenied, codeDefenderDenied:
		return host.ErrRefused
	case codeServiceStopped:
		return host.ErrNoAntivirus
	}
	return nil
}
