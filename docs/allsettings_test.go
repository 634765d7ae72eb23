package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/cluster"
)

func TestEachSettingOfLinuxWorkersHasAnEffectInTheTable(t *testing.T) {
	text := readSection(t, "linux-settings.md", "## Every setting")
	rows := tableRows(t, text, "| setting | where it is set | on Windows nodes | how, or why not |")
	if len(rows) < 40 {
		t.Fatalf("there are only %d rows", len(rows))
	}
	var kinds, reporting []string
	for _, row := range rows {
		if len(row) != 4 || !slices.Contains([]string{"applied", "reported", "none"}, row[2]) {
			t.Errorf("no effect is known of %q", row)
			continue
		}
		for _, name := range codeTexts(row[1]) {
			kind, _, _ := strings.Cut(name, " ")
			kind, _, _ = strings.Cut(kind, ".")
			kinds = append(kinds, kind)
		}
		if row[3] == "" {
			t.Errorf("%s: the reason or the place is missing", row[0])
		}
		for _, file := range codeTexts(row[3]) {
			if !strings.HasPrefix(file, "internal/") {
				continue
			}
			content, err := os.ReadFile(filepath.Join("..", file))
			if err != nil {
				t.Errorf("%s: %v", row[0], err)
			}
			if row[2] != "reported" {
				continue
			}
			if reporting = append(reporting, filepath.Base(file)); !strings.Contains(string(content), "n.addNotice(") {
				t.Errorf("%s: %s reports nothing", row[0], file)
			}
		}
		if row[2] == "reported" && !slices.ContainsFunc(codeTexts(row[3]), func(s string) bool { return strings.HasPrefix(s, "internal/cluster/") }) {
			t.Errorf("%s is reported, and the table does not say where", row[0])
		}
	}
	for _, watched := range slices.Concat(cluster.Objects(), cluster.OptionalObjects()) {
		if kind := reflect.TypeOf(watched.Object).Elem().Name(); !slices.Contains(kinds, kind) {
			t.Errorf("the operator reads objects of kind %s, which the table does not have", kind)
		}
	}
	files, err := filepath.Glob("../internal/cluster/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.Base(file); strings.Contains(string(content), "n.addNotice(") && !slices.Contains(reporting, name) {
			t.Errorf("%s reports settings of which no row is reported", file)
		}
	}
}
