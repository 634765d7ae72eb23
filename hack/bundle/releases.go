package main

import (
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
)

const (
	packageName    = "windows-machine-config-operator"
	defaultChannel = "stable"
	// oldest is the oldest release that may go straight to ours. Older ones must be brought to this one first, as they
	// always had to. What any later one has left on its nodes is taken over.
	oldest = "1.0.3"
)

// releases are all releases, the oldest first.
type releases struct {
	Releases []release `json:"releases"`
}

// release is one release of the operator.
type release struct {
	Version string `json:"version"`
	// Skips are withdrawn releases. The release replaces them too.
	Skips []string `json:"skips,omitempty"`
}

// skipRange returns the releases that may go straight to this one: those before it, of the older operator as well.
func (r release) skipRange() string { return fmt.Sprintf(">=%s <%s", oldest, r.Version) }

func (r releases) head() release { return r.Releases[len(r.Releases)-1] }

// replaced returns the version that the head replaces; "" for the first release.
func (r releases) replaced() string {
	if len(r.Releases) < 2 {
		return ""
	}
	return r.Releases[len(r.Releases)-2].Version
}

// check refuses what would be no way through the releases.
func (r releases) check(version string) error {
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
	if version != r.head().Version {
		return fmt.Errorf("the version is %q, and the last one of deploy/olm/releases.yaml %s: add the new release there, or set VERSION in the Makefile",
			version, r.head().Version)
	}
	return nil
}
