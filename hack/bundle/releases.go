package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

const (
	packageName    = "windows-machine-config-operator"
	defaultChannel = "stable"
	// oldest is the oldest release that may go straight to ours. Older ones must be brought to this one first, as they
	// always had to. What any later one has left on its nodes is taken over.
	oldest = "1.0.3"
)

// preview is the channel for those who try what comes: it has every release.
const preview = "preview"

// channels returns those that releases may be in.
func channels() []string { return []string{preview, defaultChannel} }

// releases are all releases of a catalog, the oldest first.
type releases struct {
	Releases []release `json:"releases"`
}

// release is a release that is offered.
type release struct {
	Version string `json:"version"`
	// Channels are those in which the release is offered.
	Channels []string `json:"channels"`
	// Skips are releases that were withdrawn: who has one of them is offered this one.
	Skips []string `json:"skips,omitempty"`
}

// skipRange returns the releases that may go straight to this one: those before it, of the older operator as well.
func (r release) skipRange() string { return fmt.Sprintf(">=%s <%s", oldest, r.Version) }

func (r releases) head() release { return r.Releases[len(r.Releases)-1] }

// defaultChannel is the one that a Subscription without a channel follows: none of a catalog is empty.
func (r releases) defaultChannel() string {
	if len(r.in(defaultChannel).Releases) == 0 {
		return preview
	}
	return defaultChannel
}

// in returns the releases of a channel.
func (r releases) in(channel string) releases {
	return releases{slices.DeleteFunc(slices.Clone(r.Releases), func(one release) bool { return !one.isIn(channel) })}
}

// channel is the one that a release is best known from.
func (r release) channel() string {
	if r.isIn(defaultChannel) {
		return defaultChannel
	}
	return preview
}

func (r release) isIn(channel string) bool { return slices.Contains(r.Channels, channel) }

// replaces returns the version of the release before the one with the index; "" for the first.
func (r releases) replaces(index int) string {
	if index == 0 {
		return ""
	}
	return r.Releases[index-1].Version
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
		if err := release.checkChannels(len(parsed.Pre) > 0); err != nil {
			return fmt.Errorf("deploy/olm/releases.yaml: %s %w", parsed, err)
		}
	}
	if version != r.head().Version {
		return fmt.Errorf("the version is %q, and the last one of deploy/olm/releases.yaml %s: add the new release there, or set VERSION in the Makefile",
			version, r.head().Version)
	}
	return nil
}

// checkChannels refuses a pre-release for those who want releases only, and a release that those who try what comes
// would not get.
func (r release) checkChannels(prerelease bool) error {
	for _, channel := range r.Channels {
		if !slices.Contains(channels(), channel) {
			return fmt.Errorf("is in channel %q: the channels are %s", channel, strings.Join(channels(), ", "))
		}
	}
	switch {
	case !r.isIn(preview):
		return fmt.Errorf("is not in channel %s, which has every release", preview)
	case prerelease && r.isIn(defaultChannel):
		return fmt.Errorf("is a pre-release and must not be in channel %s", defaultChannel)
	}
	return nil
}
