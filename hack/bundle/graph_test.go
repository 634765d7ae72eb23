package main

import (
	"slices"
	"testing"

	"github.com/blang/semver/v4"
)

// offered returns the release that OLM offers to an installed one: the newest that replaces it, skips it, or has it in
// its range. "" is none. These are OLM's rules for what it calls the update graph.
func offered(t *testing.T, all releases, installed string) string {
	t.Helper()
	version, name := semver.MustParse(installed), release{Version: installed}.name()
	for _, entry := range slices.Backward(channelEntries(all)) {
		inRange, err := semver.ParseRange(entry.SkipRange)
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name != name && (entry.Replaces == name || slices.Contains(entry.Skips, name) || inRange(version)) {
			return entry.Name
		}
	}
	return ""
}

// path returns the releases that OLM installs one after the other.
func path(t *testing.T, all releases, installed string) []string {
	t.Helper()
	var steps []string
	for next := offered(t, all, installed); next != ""; next = offered(t, all, next[len(packageName)+2:]) {
		if steps = append(steps, next); len(steps) > len(all.Releases) {
			t.Fatalf("from %s it goes in circles: %v", installed, steps)
		}
	}
	return steps
}

func TestTheWaysThroughTheReleases(t *testing.T) {
	first := read(t).releases
	next := releases{append(slices.Clone(first.Releases), release{Version: "12.0.1"}, release{Version: "12.1.0"})}
	withdrawn := releases{append(slices.Clone(first.Releases), release{Version: "12.0.2", Skips: []string{"12.0.1"}})}
	const v = packageName + ".v"
	for _, test := range []struct {
		name      string
		releases  releases
		installed string
		want      []string
	}{
		//
		{"our first release is brought to the newest of the channel at once", next, "12.0.0", []string{v + "12.1.0"}},
		//
		{"and so is the one between", next, "12.0.1", []string{v + "12.1.0"}},
		{"the newest stays", next, "12.1.0", nil},
		{"a withdrawn release is left for the one that skips it", withdrawn, "12.0.1", []string{v + "12.0.2"}},
		//
		{"6.x of the older operator", first, "6.0.0", []string{v + "12.0.0"}},
		{"7.0.0, which could not be reached from 6.x", first, "7.0.0", []string{v + "12.0.0"}},
		{"7.2.1", first, "7.2.1", []string{v + "12.0.0"}},
		{"10.22.0", first, "10.22.0", []string{v + "12.0.0"}},
		{"11.0.0, the last release of the older operator", first, "11.0.0", []string{v + "12.0.0"}},
		//
		{"6.x, when there are newer releases", next, "6.0.0", []string{v + "12.1.0"}},
		//
		{"1.0.0 is too old", first, "1.0.0", nil},
		//
		{"1.0.2 is too old", first, "1.0.2", nil},
		{"1.0.2 is too old for later releases as well", next, "1.0.2", nil},
		//
		{"1.0.3 is not", first, "1.0.3", []string{v + "12.0.0"}},
		//
		{"2.0.2, which had to be uninstalled for 3.0.0", first, "2.0.2", []string{v + "12.0.0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := path(t, test.releases, test.installed); !slices.Equal(got, test.want) {
				t.Errorf("from %s OLM goes to %v, want %v", test.installed, got, test.want)
			}
		})
	}
}

// A channel with two heads is refused by OLM's tools: each release but the last is replaced or skipped by another one.
//
func TestAChannelHasOneHead(t *testing.T) {
	all := releases{append(slices.Clone(read(t).releases.Releases), release{Version: "12.0.2", Skips: []string{"12.0.1"}},
		release{Version: "12.1.0"})}
	entries := channelEntries(all)
	var heads []string
	for _, entry := range entries {
		if !slices.ContainsFunc(entries, func(other channelEntry) bool {
			return other.Replaces == entry.Name || slices.Contains(other.Skips, entry.Name)
		}) {
			heads = append(heads, entry.Name)
		}
	}
	if !slices.Equal(heads, []string{packageName + ".v12.1.0"}) {
		t.Errorf("the heads are %v", heads)
	}
}
