package main

import (
	"slices"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/windows-machine-config/wmco/lab/fakeolm"
)

// offeredRelease returns the release that OLM offers to an installed release from the catalog, by the rules of
// lab/fakeolm, or "".
func offeredRelease(t *testing.T, s sources, all releases, installed string) string {
	t.Helper()
	s.releases = all
	text, err := newCatalog(&s, csvOf(t, &s), "")
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := fakeolm.ParseCatalog(text)
	if err != nil {
		t.Fatal(err)
	}
	next, err := fakeolm.NextRelease(catalog.Channel(packageName, ""), s.flavor.releaseName(installed), semver.MustParse(installed))
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// upgradePath returns the releases that OLM installs one after the other.
func upgradePath(t *testing.T, s sources, all releases, installed string) []string {
	t.Helper()
	var steps []string
	for next := offeredRelease(t, s, all, installed); next != ""; next = offeredRelease(t, s, all, next[len(packageName)+2:]) {
		if steps = append(steps, next); len(steps) > len(all.Releases) {
			t.Fatalf("from %s it goes in circles: %v", installed, steps)
		}
	}
	return steps
}

func TestUpgradeGraph_PathsBetweenReleases(t *testing.T) {
	s := read(t)
	first := s.releases
	next := releases{append(slices.Clone(first.Releases), newFinalRelease("12.0.1"), newFinalRelease("12.1.0"))}
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
			if got := upgradePath(t, *s, test.releases, test.installed); !slices.Equal(got, test.want) {
				t.Errorf("from %s OLM goes to %v, want %v", test.installed, got, test.want)
			}
		})
	}
}

// newFinalRelease returns a release that skips no other release.
func newFinalRelease(version string) release { return release{Version: version} }

// A cluster is upgraded from one release with extended support to the next over the release in between, which
// requires its own operator. Each operator release permits an upgrade of the cluster by one minor version.
//
func TestUpgradeGraph_ExtendedReleaseToNextExtendedRelease(t *testing.T) {
	const v = packageName + ".v"
	s := read(t)
	all := releases{[]release{newFinalRelease("12.0.0"), newFinalRelease("12.0.5"), newFinalRelease("13.0.0"),
		newFinalRelease("14.0.0")}}
	for _, test := range []struct {
		name      string
		releases  releases
		installed string
		want      []string
	}{
		{"in the catalog of the cluster between", releases{all.Releases[:3]}, "12.0.0", []string{v + "13.0.0"}},
		{"in the catalog of the cluster after it", all, "13.0.0", []string{v + "14.0.0"}},
		{"at once, if the one between was left out", all, "12.0.0", []string{v + "14.0.0"}},
		{"in a catalog that has not the one between", releases{append(slices.Clone(all.Releases[:2]), all.Releases[3])}, "12.0.5",
			[]string{v + "14.0.0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := upgradePath(t, *s, test.releases, test.installed); !slices.Equal(got, test.want) {
				t.Errorf("from %s OLM goes to %v, want %v", test.installed, got, test.want)
			}
		})
	}
}
