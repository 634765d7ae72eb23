package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// row is one defect. table/rules.yaml describes the fields.
type row struct {
	Defect  string   `json:"defect"`
	Breaks  string   `json:"breaks"`
	File    string   `json:"file"`
	Replace string   `json:"replace"`
	With    string   `json:"with"`
	Package string   `json:"package,omitempty"`
	Fails   []string `json:"fails"`
}

type table []row

// readTable reads all files of a directory, ordered by name.
func readTable(dir string) (table, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all table
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var rows []row
		if err := yaml.UnmarshalStrict(data, &rows); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i := range rows {
			if rows[i].Package == "" {
				rows[i].Package = path.Dir(rows[i].File)
			}
		}
		all = append(all, rows...)
	}
	return all, nil
}

// matchingRows returns the rows that match a pattern.
func (t table) matchingRows(pattern *regexp.Regexp) []row {
	return slices.DeleteFunc(slices.Clone(t), func(r row) bool {
		fields := append([]string{r.Defect, r.Breaks, r.File, r.Package}, r.Fails...)
		return !slices.ContainsFunc(fields, pattern.MatchString)
	})
}

// testsByPackage returns the tests of the rows, without duplicates.
func testsByPackage(rows []row) map[string][]string {
	tests := map[string][]string{}
	for _, r := range rows {
		for _, name := range r.Fails {
			if !slices.Contains(tests[r.Package], name) {
				tests[r.Package] = append(tests[r.Package], name)
			}
		}
	}
	return tests
}

// contentWithDefect returns the content of the row's file with the defect.
func (r row) contentWithDefect(root string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(r.File)))
	if err != nil {
		return nil, err
	}
	switch n := strings.Count(string(data), r.Replace); {
	case r.Replace == "" || r.Replace == r.With:
		return nil, errors.New("the text and its replacement are the same")
	case n != 1:
		return nil, fmt.Errorf("%s contains its text %d times, but must contain it once: %q", r.File, n, r.Replace)
	}
	return []byte(strings.Replace(string(data), r.Replace, r.With, 1)), nil
}
