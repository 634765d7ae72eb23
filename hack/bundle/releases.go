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

// channels returns those that releases are offered in.
func channels() []string { return []string{"preview", defaultChannel} }

// releases are all releases of a catalog, the oldest first.
type releases struct {
	Releases []release `json:"releases"`
}

// release is a release that is offered.
type release struct {
	Version string `json:"version"`
	// Skips are releases that were withdrawn: who has one of them is offered this one.
	Skips []string `json:"skips,omitempty"`
}

func (r release) name() string { return packageName + ".v" + r.Version }

// skipRange returns the releases that may go straight to this one: those before it, of the older operator as well.
func (r release) skipRange() string { return fmt.Sprintf(">=%s <%s", oldest, r.Version) }

func (r releases) head() release { return r.Releases[len(r.Releases)-1] }

// replaces returns the name of the release before the one with the index; "" for the first.
func (r releases) replaces(index int) string {
	if index == 0 {
		return ""
	}
	return r.Releases[index-1].name()
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
			return fmt.Errorf("deploy/olm/releases.yaml: %q is no version: %w", release.Version, err)
		}
		if parsed.LE(before) {
			return fmt.Errorf("deploy/olm/releases.yaml: %s comes after %s: the oldest is to be first", parsed, before)
		}
		before = parsed
	}
	if version != r.head().Version {
		return fmt.Errorf("the version is %q, and the last one of deploy/olm/releases.yaml %s: add the new release there, or set VERSION in the Makefile",
			version, r.head().Version)
	}
	return nil
}
