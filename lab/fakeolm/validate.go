package fakeolm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
)

// Schemas of the objects of a file-based catalog.
const (
	packageSchema = "olm.package"
	channelSchema = "olm.channel"
	bundleSchema  = "olm.bundle"
)

// validateCatalog validates the rules of operator-registry (alpha/declcfg and alpha/model).
// hack/bundle/validate compares the results.
func validateCatalog(objects []catalogObject) error {
	packages := map[string][]catalogObject{} // the package itself, then its channels and bundles
	for _, object := range objects {
		switch {
		case object.Schema == "":
			return errors.New("an object has no schema")
		case object.Schema == packageSchema && object.Name == "":
			return errors.New("a package has no name")
		case object.Schema == packageSchema && packages[object.Name] != nil:
			return fmt.Errorf("there are two packages %s", object.Name)
		case object.Schema == packageSchema:
			packages[object.Name] = []catalogObject{object}
		}
	}
	for _, object := range objects {
		if object.Schema != channelSchema && object.Schema != bundleSchema {
			continue
		}
		if packages[object.Package] == nil {
			return fmt.Errorf("%s %s is of unknown package %q", object.Schema, object.Name, object.Package)
		}
		packages[object.Package] = append(packages[object.Package], object)
	}
	for name, content := range packages {
		if err := validatePackage(content[0], content[1:]); err != nil {
			return fmt.Errorf("package %s: %w", name, err)
		}
	}
	return nil
}

func validatePackage(pkg catalogObject, content []catalogObject) error {
	channels, bundles := map[string][]Entry{}, map[string]bool{}
	versions := map[string]string{} // names of bundles
	for _, object := range content {
		if object.Schema == channelSchema {
			if channels[object.Name] != nil {
				return fmt.Errorf("there are two channels %s", object.Name)
			}
			if err := validateChannel(object); err != nil {
				return err
			}
			channels[object.Name] = object.Entries
			continue
		}
		if bundles[object.Name] {
			return fmt.Errorf("there are two bundles %s", object.Name)
		}
		bundles[object.Name] = true
		version, err := validateBundle(object)
		if err != nil {
			return err
		}
		if other := versions[version]; other != "" {
			return fmt.Errorf("bundles %s and %s are both of version %s", other, object.Name, version)
		}
		versions[version] = object.Name
	}
	if channels[pkg.DefaultChannel] == nil {
		return fmt.Errorf("there is no default channel %q", pkg.DefaultChannel)
	}
	offered := map[string]bool{}
	for _, entries := range channels {
		for _, entry := range entries {
			if !bundles[entry.Name] {
				return fmt.Errorf("entry %s has no bundle", entry.Name)
			}
			offered[entry.Name] = true
		}
	}
	for name := range bundles {
		if !offered[name] {
			return fmt.Errorf("bundle %s is in no channel", name)
		}
	}
	return nil
}

// validateBundle returns the version of a bundle.
func validateBundle(bundle catalogObject) (string, error) {
	if bundle.Image == "" {
		return "", fmt.Errorf("bundle %s has no image", bundle.Name)
	}
	var values []struct{ PackageName, Version string }
	for _, p := range bundle.Properties {
		if p.Type != packageSchema {
			continue
		}
		var value struct{ PackageName, Version string }
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return "", fmt.Errorf("property %s of bundle %s: %w", p.Type, bundle.Name, err)
		}
		values = append(values, value)
	}
	if len(values) != 1 {
		return "", fmt.Errorf("bundle %s has %d properties %s", bundle.Name, len(values), packageSchema)
	}
	if values[0].PackageName != bundle.Package {
		return "", fmt.Errorf("the property %s of bundle %s is of package %q", packageSchema, bundle.Name, values[0].PackageName)
	}
	version, err := semver.Parse(values[0].Version)
	if err != nil {
		return "", fmt.Errorf("bundle %s is of version %q: %w", bundle.Name, values[0].Version, err)
	}
	return version.String(), nil
}

// validateChannel checks that there is one head, and that the chain of replacements contains all entries that
// are not skipped.
func validateChannel(channel catalogObject) error {
	if channel.Name == "" {
		return fmt.Errorf("a channel of package %s has no name", channel.Package)
	}
	if len(channel.Entries) == 0 {
		return fmt.Errorf("channel %s has no entry", channel.Name)
	}
	entries, skipped := map[string]Entry{}, map[string]bool{}
	for _, entry := range channel.Entries {
		if _, twice := entries[entry.Name]; twice {
			return fmt.Errorf("channel %s has two entries %s", channel.Name, entry.Name)
		}
		if slices.Contains(entry.Skips, "") {
			return fmt.Errorf("%s in channel %s skips a release without a name", entry.Name, channel.Name)
		}
		entries[entry.Name] = entry
		for _, name := range entry.Skips {
			skipped[name] = true
		}
	}
	next, err := Head(channel.Entries)
	if err != nil {
		return fmt.Errorf("channel %s: %w", channel.Name, err)
	}
	reached := map[string]bool{}
	for ; next != "" && (len(reached) == 0 || !skipped[next]); next = entries[next].Replaces {
		if reached[next] {
			return fmt.Errorf("in channel %s releases replace each other in a circle with %s", channel.Name, next)
		}
		reached[next] = true
	}
	for name := range entries {
		if !reached[name] && !skipped[name] {
			return fmt.Errorf("the head of channel %s does not lead to %s", channel.Name, name)
		}
	}
	return nil
}
