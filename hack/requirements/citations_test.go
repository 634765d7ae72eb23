package main

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// citationsIn returns the citations of one test file.
func citationsIn(t *testing.T, name, source string) map[string][]proof {
	t.Helper()
	citations, err := findCitations(fstest.MapFS{name: {Data: []byte(source)}})
	if err != nil {
		t.Fatal(err)
	}
	return citations
}

func TestCitations_CountForTestOrSubtest(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"in the doc comment of a test": {`
			// R-001 is shown here.
			func TestA(t *testing.T) {}`, "TestA"},
		"in the doc comment of a fuzz test": {`
			/* It never stops. R-001 */
			func FuzzA(f *testing.F) {}`, "FuzzA"},
		"above t.Run": {`
			func TestA(t *testing.T) {
				// R-001
				t.Run("a case", func(t *testing.T) {})
			}`, "TestA/a case"},
		"behind t.Run": {`
			func TestA(t *testing.T) {
				if t.Run("a case", func(t *testing.T) { // R-001
				}) {}
			}`, "TestA/a case"},
		"at t.Run in t.Run": {`
			func TestA(t *testing.T) {
				t.Run("outer", func(t *testing.T) {
					t.Run("inner", run) // R-001
				})
			}`, "TestA/outer/inner"},
		"at t.Run in a t.Run of a loop": {`
			func TestA(t *testing.T) {
				for name := range cases {
					t.Run(name, func(t *testing.T) {
						t.Run("inner", run) // R-001
					})
				}
			}`, "TestA"},
		"at t.Run with a name that only the run tells": {`
			func TestA(t *testing.T) {
				t.Run("on "+platform, run) // R-001
			}`, "TestA"},
		"at t.Run over two lines": {`
			func TestA(t *testing.T) {
				// R-001
				held := t.Run("a case",
					run)
			}`, "TestA/a case"},
		"in the body of a test": {`
			func TestA(t *testing.T) {
				// R-001
				say("x", "y")
			}`, "TestA"},
		"behind a row of a map": {`
			func TestA(t *testing.T) {
				for name, test := range map[string]int{
					"a row": 1, // R-001
				} {
					t.Run(name, run)
				}
			}`, "TestA/a row"},
		"above a row of a map that a variable holds": {`
			func TestA(t *testing.T) {
				tests := map[string]struct{ a int }{
					"a row": {1},
					// R-001
					"another": {
						2,
					},
				}
				for name := range tests {
					t.Run(name, run)
				}
			}`, "TestA/another"},
		"at a row of a slice, whose first field is the name": {`
			func TestA(t *testing.T) {
				for _, test := range []struct {
					name, other string
				}{
					{"a row", "x"}, // R-001
				} {
					t.Run(test.name, run)
				}
			}`, "TestA/a row"},
		"at a row of a slice with names of fields": {`
			func TestA(t *testing.T) {
				var rows = []row{
					{other: "x", name: "a row"}, // R-001
				}
				for _, row := range rows {
					t.Run(row.name, run)
				}
			}`, "TestA/a row"},
		"at a row of names": {`
			func TestA(t *testing.T) {
				for _, name := range []string{
					"a row", // R-001
				} {
					t.Run(name, run)
				}
			}`, "TestA/a row"},
	} {
		t.Run(name, func(t *testing.T) {
			got := citationsIn(t, "x/a_test.go", "package a\n"+test.source)
			if want := map[string][]proof{"R-001": {{"x/a_test.go", test.want}}}; !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestCitations_OutsideTestIsError(t *testing.T) {
	for name, source := range map[string]string{
		"in the comment of the file": `// R-001`,
		"at a helper": `
			// R-001
			func assert(t *testing.T) { t.Run("a case", run) }`,
		"at a method": `
			// R-001
			func (s *suite) TestA() {}`,
		"at what only looks like a test": `
			// R-001
			func Testify() {}`,
		"at a benchmark": `
			// R-001
			func BenchmarkA(b *testing.B) {}`,
		"at TestMain": `
			// R-001
			func TestMain(m *testing.M) {}`,
		"at t.Run in a helper": `
			func cases(t *testing.T) {
				t.Run("a case", run) // R-001
			}`,
		"at a row of a table that is no test's": `
			var rows = map[string]int{
				"a row": 1, // R-001
			}`,
		"as a range":                     "// R-001 to R-003\nfunc TestA(t *testing.T) {}",
		"as a range with a hyphen":       "// R-001-R-003\nfunc TestA(t *testing.T) {}",
		"as a range over two lines":      "// R-001 to\n// R-003\nfunc TestA(t *testing.T) {}",
		"as a range of limits":           "// L-01–03\nfunc TestA(t *testing.T) {}",
		"in a file that needs a tag":     "//go:build payload\n\npackage a\n\n// R-001\nfunc TestA(t *testing.T) {}",
		"in a file for another platform": "//go:build darwin || (linux && arm64)\n\npackage a\n\n// R-001\nfunc TestA(t *testing.T) {}",
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(source, "package a") {
				source = "package a\n\n" + source
			}
			citations, err := findCitations(fstest.MapFS{"x/a_test.go": {Data: []byte(source)}})
			if err == nil || !strings.Contains(err.Error(), "x/a_test.go:") || len(citations) > 0 {
				t.Errorf("got %v and %v, want an error that names file and line", citations, err)
			}
		})
	}
}

func TestCitations_ErrorHasFileAndLine(t *testing.T) {
	_, err := findCitations(fstest.MapFS{"a_test.go": {Data: []byte("package a\n\nfunc helper() {\n\t// D-1\n\tx()\n}\n")}})
	if want := "a_test.go:4:2: D-1 is cited outside of a test"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestCitations_WindowsTestsCountIfRunUnderWine(t *testing.T) {
	const source = "package a\n\n// R-001\nfunc TestA() {}\n"
	for name, counts := range map[string]bool{
		"internal/x/a_windows_test.go": true, "cmd/wicd/a_windows_test.go": true, "internal/x/a_linux_test.go": true,
		"lab/x/a_windows_test.go": false, "payload/x/a_windows_test.go": false, "internal/x/a_darwin_test.go": false,
	} {
		if got, err := findCitations(fstest.MapFS{name: {Data: []byte(source)}}); (err == nil) != counts ||
			(len(got) > 0) != counts {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The commands of continuous integration are duplicated here.
func TestCitations_AssumptionsAboutCIHold(t *testing.T) {
	for _, script := range []string{".ci/run", "hack/run-tests", "Makefile"} {
		if strings.Contains(read(t, "../..", script), "-tags") {
			t.Errorf("%s sets a build tag, of which runsInCI knows nothing", script)
		}
	}
	if list := `productPackages = []string{"./api/...", "./cmd/...", "./internal/..."}`; !strings.Contains(read(t, "../..",
		"test/contract/main_test.go"), list) {
		t.Errorf("test/contract runs the tests of other packages under Wine than testedOnWine says, which are %q",
			testedOnWine)
	}
}

func TestCitations_NonTestsIgnored(t *testing.T) {
	const source = "package a\n\n// R-001\n"
	found, err := findCitations(fstest.MapFS{
		"a.go": {Data: []byte(source)}, "x/testdata/a_test.go": {Data: []byte(source)},
		"build/x/a_test.go": {Data: []byte(source)},
		".x/a_test.go":      {Data: []byte(source)}, "_x/a_test.go": {Data: []byte(source)},
		"x/a_test.go": {Data: []byte("package a\n\nconst text = \"R-001 in a text\"\n")},
	})
	if err != nil || len(found) > 0 {
		t.Errorf("got %v and %v", found, err)
	}
}

func TestCitations_UnparsableFileNamedInError(t *testing.T) {
	_, err := findCitations(fstest.MapFS{"x/broken_test.go": {Data: []byte("packag x // R-001")}})
	if err == nil || !strings.Contains(err.Error(), "x/broken_test.go") {
		t.Errorf("got %v", err)
	}
}

func TestCitations_RepeatedCitationListedOnce(t *testing.T) {
	got := citationsIn(t, "a_test.go",
		"package a\n\n// R-002, R-001, D-1, L-01: R-001 again.\nfunc TestB() {}\n\n// R-001\nfunc TestA() {}\n")
	a, b := proof{"a_test.go", "TestA"}, proof{"a_test.go", "TestB"}
	if want := map[string][]proof{"R-001": {a, b}, "R-002": {b}, "D-1": {b}, "L-01": {b}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
