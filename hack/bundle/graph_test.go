package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/windows-machine-config/wmco/lab/olm"
)

// offered returns the release that OLM offers to an installed one, by the rules of the lab's player; "" is none.
func offered(t *testing.T, all releases, installed string) string {
	t.Helper()
	var entries []olm.Entry
	for _, entry := range channelEntries(flavor{}, all, defaultChannel) {
		entries = append(entries, olm.Entry(entry))
	}
	next, err := olm.Offered(entries, flavor{}.release(installed), semver.MustParse(installed))
	if err != nil {
		t.Fatal(err)
	}
	return next
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
	next := releases{append(slices.Clone(first.Releases), offeredEverywhere("12.0.1"), offeredEverywhere("12.1.0"))}
	withdrawn := releases{append(slices.Clone(first.Releases), release{Version: "12.0.2", Channels: channels(), Skips: []string{"12.0.1"}})}
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
	all := releases{append(slices.Clone(read(t).releases.Releases), release{Version: "12.0.2", Channels: channels(),
		Skips: []string{"12.0.1"}}, offeredEverywhere("12.1.0"))}
	entries := channelEntries(flavor{}, all, defaultChannel)
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

// offeredEverywhere is a release in all channels.
func offeredEverywhere(version string) release {
	return release{Version: version, Channels: channels()}
}

// tried is a release for those who try what comes.
func tried(version string) release { return release{Version: version, Channels: []string{"preview"}} }

// headOf returns the newest release of a channel.
func headOf(entries []channelEntry) channelEntry { return entries[len(entries)-1] }

//
func TestAPreReleaseNeverHeadsStable(t *testing.T) {
	const v = packageName + ".v"
	all := releases{[]release{offeredEverywhere("12.0.0"), tried("12.1.0-rc.1"), tried("12.1.0-rc.2"),
		offeredEverywhere("12.1.0"), tried("13.0.0-rc.1")}}
	if err := all.check("13.0.0-rc.1"); err != nil {
		t.Fatal(err)
	}
	for channel, want := range map[string]struct{ head, replaces string }{
		"stable":  {v + "12.1.0", v + "12.0.0"},
		"preview": {v + "13.0.0-rc.1", v + "12.1.0"},
	} {
		t.Run("the head of "+channel, func(t *testing.T) {
			if head := headOf(channelEntries(flavor{}, all, channel)); head.Name != want.head || head.Replaces != want.replaces {
				t.Errorf("it is %+v", head)
			}
		})
	}
	t.Run("the bundle of a pre-release is in preview alone, and replaces what is there", func(t *testing.T) {
		s := read(t)
		s.releases = all
		if got := annotations(s)["operators.operatorframework.io.bundle.channels.v1"]; got != "preview" {
			t.Errorf("it is in %s", got)
		}
		if csv := csvOf(t, s); csv.Spec.Replaces != v+"12.1.0" {
			t.Errorf("it replaces %s", csv.Spec.Replaces)
		}
	})
	t.Run("a catalog with nothing but pre-releases has no empty channel", func(t *testing.T) {
		s := read(t)
		s.releases = releases{[]release{tried("12.0.0-rc.1")}}
		objects := catalogObjects(t, s)
		if len(objects["olm.channel"]) != 1 || objects["olm.package"][0]["defaultChannel"] != "preview" {
			t.Errorf("channels %v of package %v", objects["olm.channel"], objects["olm.package"])
		}
	})
	for name, test := range map[string]struct {
		release release
		says    string
	}{
		"a pre-release in stable": {offeredEverywhere("12.1.0-rc.1"), "12.1.0-rc.1 is a pre-release and must not be in channel stable"},
		"a release that those who try do not get": {release{Version: "12.1.0", Channels: []string{"stable"}},
			"12.1.0 is not in channel preview"},
		"a release in no channel":              {release{Version: "12.1.0"}, "is not in channel preview"},
		"a release in a channel of other name": {release{Version: "12.1.0", Channels: []string{"preview", "beta"}}, `in channel "beta"`},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			bad := releases{[]release{offeredEverywhere("12.0.0"), test.release}}
			if err := bad.check(test.release.Version); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A cluster goes from one release with extended support to the next over the one between, whose operator it needs while
// it is there: the release before lets it go one minor version further, and no more.
//
func TestFromOneExtendedReleaseToTheNext(t *testing.T) {
	const v = packageName + ".v"
	all := releases{[]release{offeredEverywhere("12.0.0"), offeredEverywhere("12.0.5"), offeredEverywhere("13.0.0"),
		offeredEverywhere("14.0.0")}}
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
			if got := path(t, test.releases, test.installed); !slices.Equal(got, test.want) {
				t.Errorf("from %s OLM goes to %v, want %v", test.installed, got, test.want)
			}
		})
	}
}
