package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// module is a program with three tests: a test with an assertion, a test without one, and a test that reads a file.
var module = map[string]string{
	"go.mod":       "module example.com/sum\n\ngo 1.26\n",
	"sum/sum.go":   "package sum\n\nfunc Sum(a, b int) int { return a + b }\n",
	"sum/text.txt": "hello\n",
	"sum/sum_test.go": `package sum

import (
	"os"
	"testing"
)

func TestSum(t *testing.T) {
	t.Run("two and three are five", func(t *testing.T) {
		if got := Sum(2, 3); got != 5 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("nothing is nothing", func(t *testing.T) {
		if got := Sum(0, 0); got != 0 {
			t.Errorf("got %d", got)
		}
	})
}

func TestText(t *testing.T) {
	if data, err := os.ReadFile("text.txt"); err != nil || string(data) != "hello\n" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestSkipped(t *testing.T) { t.Skip() }

func TestFails(t *testing.T) { t.Error() }
`,
}

func TestVerdicts(t *testing.T) {
	root := t.TempDir()
	for name, text := range module {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	difference := row{File: "sum/sum.go", Replace: "a + b", With: "a - b", Package: "sum"}
	with := func(change func(*row)) row {
		r := difference
		change(&r)
		return r
	}
	const five, nothing = "TestSum/two and three are five", "TestSum/nothing is nothing"
	for _, test := range []struct {
		row  row
		want string
	}{
		{with(func(r *row) { r.Defect, r.Fails = "a defect that its test finds", []string{five} }), "caught"},
		{with(func(r *row) { r.Defect, r.Fails = "a defect that no test finds", []string{nothing} }), "SURVIVED"},
		{with(func(r *row) {
			r.Defect, r.Fails = "a defect that one of two tests finds", []string{five, nothing}
		}), "SURVIVED"},
		{with(func(r *row) { r.Defect, r.Fails = "a test that is not there", []string{"TestSum/no"} }), "BROKEN"},
		{with(func(r *row) { r.Defect, r.Fails = "a test that skips", []string{"TestSkipped"} }), "BROKEN"},
		{with(func(r *row) { r.Defect, r.Fails = "a test that fails anyway", []string{"TestFails"} }), "BROKEN"},
		{with(func(r *row) { r.Defect, r.With, r.Fails = "a defect that does not compile", "c", []string{five} }), "BROKEN"},
		{with(func(r *row) { r.Defect, r.With, r.Fails = "a defect that panics", "a / (a - a)", []string{five} }), "BROKEN"},
		{with(func(r *row) { r.Defect, r.Replace, r.Fails = "a text that is gone", "a * b", []string{five} }), "BROKEN"},
		{with(func(r *row) { r.Defect, r.Replace, r.Fails = "a text that is there twice", "a", []string{five} }), "BROKEN"},
		{row{
			Defect: "a file that is read while the test runs", File: "sum/text.txt", Replace: "hello",
			With: "no", Package: "sum",
			Fails: []string{"TestText"},
		}, "caught"},
	} {
		t.Run(test.row.Defect, func(t *testing.T) {
			var out bytes.Buffer
			seedAll(t.Context(), &out, newSeeder(root), []row{test.row})
			if !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("it says: %s", &out)
			}
		})
	}
	t.Run("the checkout is as it was", func(t *testing.T) {
		for name, text := range module {
			if data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err != nil || string(data) != text {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if left, err := filepath.Glob(filepath.Join(root, "build", "*")); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	})
}

func TestTable_RowsSelectedByAnyField(t *testing.T) {
	rows := table{
		{Defect: "a changed host key is taken", Breaks: "rule 4", File: "internal/policy/nodeidentity/hostkey.go",
			Fails: []string{"TestHostKey"}},
		{Defect: "nothing", Breaks: "rule 5", File: "internal/plan/dependencies.go", Fails: []string{"TestOrder"}},
	}
	for _, pattern := range []string{"host key", "rule 4", "policy/", "TestHostKey$"} {
		if got := rows.matchingRows(regexp.MustCompile(pattern)); len(got) != 1 || got[0].Breaks != "rule 4" {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}
