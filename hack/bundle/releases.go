package main

import (
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
)

const (
	packageName    = "windows-machine-config-operator"
	defaultChannel = "stable"
	// oldest is the oldest release that may be upgraded directly to the current release. Older releases must first
	// be upgraded to oldest, as before. The nodes of all later releases are adopted.
	oldest = "1.0.3"
)

// releases contains all releases, the oldest first.
type releases struct {
	Releases []release `json:"releases"`
}

// release is one release of the operator.
type release struct {
	Version string `json:"version"`
	// Skips lists withdrawn releases. The release replaces them, too.
	Skips []string `json:"skips,omitempty"`
}

// skipRange returns the range of releases that may be upgraded directly to this release: all previous releases,
// including the legacy operator.
func (r release) skipRange() string { return fmt.Sprintf(">=%s <%s", oldest, r.Version) }

func (r releases) headRelease() release { return r.Releases[len(r.Releases)-1] }

// replacedVersion returns the version that the head replaces, or "" for the first release.
func (r releases) replacedVersion() string {
	if len(r.Releases) < 2 {
		return ""
	}
	return r.Releases[len(r.Releases)-2].Version
}

// checkUpgradePath returns an error if the releases do not form a valid upgrade path.
func (r releases) checkUpgradePath(version string) error {
	if len(r.Releases) == 0 {
		return errors.New("deploy/olm/releases.yaml names no release")
	}
	var before semver.Version
	for _, release := range r.Releases {
		parsed, err := semver.Parse(release.Version)
		if err != nil {
			return fmt.Errorf("deploy/olm/releases.yaml: %q is not a version: %w", release.Version, err)
		}
		if parsed.LE(before) {
			return fmt.Errorf("deploy/olm/releases.yaml: %s comes after %s: list the oldest first", parsed, before)
		}
		before = parsed
		if len(parsed.Pre) > 0 {
			return fmt.Errorf("deploy/olm/releases.yaml: %s is a pre-release: channel %s has final releases only", parsed, defaultChannel)
		}
	}
	if version != r.headRelease().Version {
		return fmt.Errorf("the version is %q, and the last one of deploy/olm/releases.yaml %s: add the new release there, or set VERSION in the Makefile",
			version, r.headRelease().Version)
	}
	return nil
}
