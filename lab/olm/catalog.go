package olm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Catalog is what a CatalogSource serves: the channels of packages.
type Catalog struct {
	packages map[string]map[string][]Entry
	defaults map[string]string
}

// ReadCatalog reads a file-based catalog.
func ReadCatalog(file string) (*Catalog, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Catalog{packages: map[string]map[string][]Entry{}, defaults: map[string]string{}}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var object struct {
			Schema         string  `json:"schema"`
			Package        string  `json:"package"`
			Name           string  `json:"name"`
			DefaultChannel string  `json:"defaultChannel"`
			Entries        []Entry `json:"entries"`
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the catalog %s: %w", file, err)
		}
		switch object.Schema {
		case "olm.package":
			c.defaults[object.Name] = object.DefaultChannel
		case "olm.channel":
			c.Set(object.Package, object.Name, object.Entries)
		}
	}
}

// Set replaces a channel, as a newer image of the catalog does.
func (c *Catalog) Set(pkg, channel string, entries []Entry) {
	if c.packages[pkg] == nil {
		c.packages[pkg] = map[string][]Entry{}
	}
	c.packages[pkg][channel] = entries
}

// Channel returns the releases of a channel, the default one for "".
func (c *Catalog) Channel(pkg, channel string) []Entry {
	if channel == "" {
		channel = c.defaults[pkg]
	}
	return c.packages[pkg][channel]
}
