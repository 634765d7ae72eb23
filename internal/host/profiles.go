package host

import (
	"slices"
	"strings"
)

// FirewallProfiles is AllProfiles, or one or more of the three network profiles, in this order and separated by
// commas.
type FirewallProfiles string

// The profiles of Windows Defender Firewall.
const (
	AllProfiles      FirewallProfiles = ""
	ProfileDomain    FirewallProfiles = "Domain"
	ProfilePrivate   FirewallProfiles = "Private"
	ProfilePublic    FirewallProfiles = "Public"
	profileSeparator                  = ","
)

// Profiles returns all profiles in their order.
func Profiles() []FirewallProfiles {
	return []FirewallProfiles{ProfileDomain, ProfilePrivate, ProfilePublic}
}

// ProfilesOf returns the value for these profiles, and AllProfiles for all three.
func ProfilesOf(kinds ...FirewallProfiles) FirewallProfiles {
	var words []string
	for _, each := range Profiles() {
		if slices.Contains(kinds, each) {
			words = append(words, string(each))
		}
	}
	if len(words) == len(Profiles()) {
		return AllProfiles
	}
	return FirewallProfiles(strings.Join(words, profileSeparator))
}

// Has reports whether p includes the profile.
func (p FirewallProfiles) Has(kind FirewallProfiles) bool {
	return p == AllProfiles || slices.Contains(p.splitKinds(), kind)
}

// IsValid reports whether each profile is one of the three.
func (p FirewallProfiles) IsValid() bool {
	return p == AllProfiles ||
		!slices.ContainsFunc(p.splitKinds(), func(kind FirewallProfiles) bool { return !slices.Contains(Profiles(), kind) })
}

// Normal returns the same profiles in their order.
func (p FirewallProfiles) Normal() FirewallProfiles {
	if p == AllProfiles {
		return p
	}
	return ProfilesOf(p.splitKinds()...)
}

func (p FirewallProfiles) splitKinds() []FirewallProfiles {
	var kinds []FirewallProfiles
	for word := range strings.SplitSeq(string(p), profileSeparator) {
		kinds = append(kinds, FirewallProfiles(word))
	}
	return kinds
}
