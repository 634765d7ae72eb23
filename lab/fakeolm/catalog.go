package fakeolm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Catalog is the content of a CatalogSource: the channels of packages.
type Catalog struct {
	packages map[string]map[string][]Entry
	defaults map[string]string
}

// catalogObject is an object of a file-based catalog, of any schema.
type catalogObject struct {
	Schema         string           `json:"schema"`
	Package        string           `json:"package"`
	Name           string           `json:"name"`
	DefaultChannel string           `json:"defaultChannel"`
	Entries        []Entry          `json:"entries"`
	Image          string           `json:"image"`
	Properties     []bundleProperty `json:"properties"`
}

type bundleProperty struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// ReadCatalog reads a file-based catalog.
func ReadCatalog(file string) (*Catalog, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c, err := ParseCatalog(data)
	if err != nil {
		return nil, fmt.Errorf("read the catalog %s: %w", file, err)
	}
	return c, nil
}

// ParseCatalog parses a file-based catalog, and refuses it by the rules of operator-registry.
func ParseCatalog(data []byte) (*Catalog, error) {
	var objects []catalogObject
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var object catalogObject
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	if err := validateCatalog(objects); err != nil {
		return nil, err
	}
	c := &Catalog{packages: map[string]map[string][]Entry{}, defaults: map[string]string{}}
	for _, object := range objects {
		switch object.Schema {
		case packageSchema:
			c.defaults[object.Name] = object.DefaultChannel
		case channelSchema:
			if c.packages[object.Package] == nil {
				c.packages[object.Package] = map[string][]Entry{}
			}
			c.packages[object.Package][object.Name] = object.Entries
		}
	}
	return c, nil
}

// Channel returns the releases of a channel, the default one for "".
func (c *Catalog) Channel(pkg, channel string) []Entry {
	if channel == "" {
		channel = c.defaults[pkg]
	}
	return c.packages[pkg][channel]
}
