// Package hack has the scripts that the Makefile calls; here are their tests.
package hack

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// summary is what is shown of what go test printed.
func summary(t *testing.T, printed string) string {
	t.Helper()
	command := exec.Command("awk", "-f", "summarize-tests.awk")
	command.Stdin = strings.NewReader(printed)
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if failed := err != nil; failed != strings.HasSuffix(string(out), "FAIL\n") {
		t.Errorf("it ends with an error: %t", failed)
	}
	return string(out)
}

func TestTheSummaryOfTests(t *testing.T) {
	for name, c := range map[string]struct{ printed, want string }{
		"a package that passes is one line": {
			printed: "=== RUN   TestA\n    a_test.go:1: said\n--- PASS: TestA (0.00s)\nPASS\nok  \ta\t0.1s\n",
			want:    "1 tests and cases passed, 0 failed, 0 skipped\nok  \ta\t0.1s\n",
		},
		"of a package that fails the failed tests are shown, and named at the end": {
			printed: "=== RUN   TestA\n    a_test.go:1: fine\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/x\n    b_test.go:2: broken\n" +
				"=== RUN   TestB/y\n    b_test.go:3: whole\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\n    --- PASS: TestB/y (0.00s)\n" +
				"FAIL\nFAIL\ta\t0.1s\nok  \tb\t0.1s\nFAIL\n",
			want: "    b_test.go:2: broken\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\nFAIL\ta\t0.1s\n" +
				"failed (build/test.log has all that was printed):\n  a TestB\n2 tests and cases passed, 2 failed, 0 skipped\nok  \tb\t0.1s\nFAIL\n",
		},
		"tests that run at the same time are told apart": {
			printed: "=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n=== PAUSE TestB\n=== CONT  TestA\n=== CONT  TestB\n    b_test.go:1: b\n" +
				"=== NAME  TestA\n    a_test.go:1: a\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\n",
			want: "    b_test.go:1: b\n--- FAIL: TestB (0.00s)\nfailed (build/test.log has all that was printed):\n  a TestB\n" +
				"1 tests and cases passed, 1 failed, 0 skipped\nFAIL\ta\t0.1s\nFAIL\n",
		},
		"a panic is shown whoever said something last": {
			printed: "=== RUN   TestA\n    a_test.go:1: fine\npanic: test timed out after 30m0s\n\trunning tests:\n\t\tTestB (30m0s)\n\ngoroutine 1:\n" +
				"=== NAME  TestA\n--- FAIL: TestB (0.00s)\nFAIL\ta\t0.1s\nFAIL\n",
			want: "panic: test timed out after 30m0s\n\trunning tests:\n\t\tTestB (30m0s)\n\ngoroutine 1:\n--- FAIL: TestB (0.00s)\n" +
				"failed (build/test.log has all that was printed):\n  a TestB\n0 tests and cases passed, 1 failed, 0 skipped\nFAIL\ta\t0.1s\nFAIL\n",
		},
		"where no test has failed everything is shown": {
			printed: "=== RUN   TestA\n    a_test.go:1: said\n--- PASS: TestA (0.00s)\nexit status 1\nFAIL\ta\t0.1s\nFAIL\n",
			want:    "    a_test.go:1: said\nexit status 1\n1 tests and cases passed, 0 failed, 0 skipped\nFAIL\ta\t0.1s\nFAIL\n",
		},
		"what does not compile is shown": {
			printed: "# a\na.go:1:1: no\nFAIL\ta [build failed]\nok  \tb\t0.1s\nFAIL\n",
			want:    "# a\na.go:1:1: no\nFAIL\ta [build failed]\n0 tests and cases passed, 0 failed, 0 skipped\nok  \tb\t0.1s\nFAIL\n",
		},
		"a test that passes when it is run again is named, and nothing has failed": {
			printed: "--- PASS: TestA (0.00s)\n=== RUN   TestB\n    b_test.go:1: late\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\n" +
				"AGAIN a TestB\n=== RUN   TestB\n    --- PASS: TestB/x (0.00s)\n--- PASS: TestB (0.00s)\nPASS\nok  \ta\t0.2s\n",
			want: "    b_test.go:1: late\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\nFAIL\ta\t0.1s\n" +
				"failed, and passed when run again by itself (build/test.log has both; why is worth a look):\n  a TestB\n" +
				"3 tests and cases passed, 0 failed, 0 skipped\nok  \ta\t0.2s\n",
		},
		"a test that fails again has failed": {
			printed: "=== RUN   TestB\n    b_test.go:1: late\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\n" +
				"AGAIN a TestB\n=== RUN   TestB\n    b_test.go:1: late again\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\ta\t0.2s\nFAIL\n",
			want: "    b_test.go:1: late\n--- FAIL: TestB (0.00s)\nFAIL\ta\t0.1s\n    b_test.go:1: late again\n--- FAIL: TestB (0.00s)\n" +
				"failed (build/test.log has all that was printed):\n  a TestB\n0 tests and cases passed, 2 failed, 0 skipped\nFAIL\ta\t0.2s\nFAIL\n",
		},
		"a package whose other tests have failed too has failed": {
			printed: "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\nAGAIN a TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \ta\t0.2s\n",
			want: "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\ta\t0.1s\n" +
				"failed (build/test.log has all that was printed):\n  a TestA\n  a TestB\n1 tests and cases passed, 2 failed, 0 skipped\nok  \ta\t0.2s\nFAIL\n",
		},
		"a test that does not run when it is run again has failed": {
			printed: "--- FAIL: TestB (0.00s)\nFAIL\nFAIL\ta\t0.1s\nFAIL\nAGAIN a TestB\ntesting: warning: no tests to run\nPASS\nok  \ta\t0.2s [no tests to run]\n",
			want: "--- FAIL: TestB (0.00s)\nFAIL\ta\t0.1s\nfailed (build/test.log has all that was printed):\n  a TestB\n" +
				"0 tests and cases passed, 1 failed, 0 skipped\nok  \ta\t0.2s [no tests to run]\nFAIL\n",
		},
		"what was skipped is said, with its reason": {
			printed: "=== RUN   TestA\n    a_test.go:1: SKIPPED: needs root\n--- SKIP: TestA (0.00s)\nPASS\nok  \ta\t0.1s\n",
			want:    "skipped on this machine:\n  SKIPPED: needs root\n  TestA\n0 tests and cases passed, 0 failed, 1 skipped\nok  \ta\t0.1s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summary(t, c.printed); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestWhichTestsAreRunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		printed, want string
		broken        bool
	}{
		"those that have failed, each with its package": {
			printed: "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x (0.00s)\nFAIL\nFAIL\ta\t0.1s\nok  \tb\t0.1s\n--- FAIL: TestB (0.00s)\n--- FAIL: TestC (0.00s)\nFAIL\nFAIL\tc\t0.1s\nFAIL\n",
			want:    "a TestB\nc TestB\nc TestC\n",
		},
		"none where all have passed":            {printed: "--- PASS: TestA (0.00s)\nPASS\nok  \ta\t0.1s\n"},
		"none where something does not compile": {printed: "FAIL\ta [build failed]\nFAIL\n", broken: true},
		"none where a whole program has failed": {printed: "--- FAIL: TestA (0.00s)\npanic: no\nFAIL\ta\t0.1s\nFAIL\n", want: "a TestA\n", broken: true},
		"none where a program ends too early":   {printed: "--- PASS: TestA (0.00s)\nexit status 1\nFAIL\ta\t0.1s\nFAIL\n", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.Command("awk", "-f", "failed-tests.awk")
			command.Stdin = strings.NewReader(c.printed)
			out, err := command.Output()
			if string(out) != c.want || (err != nil) != c.broken {
				t.Errorf("got %q, %v; want %q, an error: %t", out, err, c.want, c.broken)
			}
		})
	}
}
