package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheEstimateFollowsTheWeightOfWhatIsCompiled(t *testing.T) {
	weights := map[string]int64{"linux a": 300, "linux b": 100, "windows a": 600}
	for name, c := range map[string]struct {
		compiled []string
		percent  int
		left     time.Duration
	}{
		"nothing is compiled":             {nil, 0, 0},
		"one is compiled":                 {[]string{"linux a"}, 30, 70 * time.Second},
		"a small one weighs little":       {[]string{"linux a", "linux b"}, 40, 45 * time.Second},
		"all are compiled":                {[]string{"linux a", "linux b", "windows a"}, 100, 0},
		"an unknown one changes nothing":  {[]string{"linux a", "linux c"}, 30, 70 * time.Second},
		"another operating system counts": {[]string{"windows a"}, 60, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			compiled := map[string]bool{}
			for _, each := range c.compiled {
				compiled[each] = true
			}
			if percent, left := estimate(weights, compiled, 30*time.Second); percent != c.percent || left != c.left {
				t.Errorf("got %d %%, %s; want %d %%, %s", percent, left, c.percent, c.left)
			}
		})
	}
}

func TestWhatRemainsIsSaidInRoundNumbers(t *testing.T) {
	for left, want := range map[time.Duration]string{
		0:                 "linking",
		3 * time.Second:   "about 10 seconds remain",
		33 * time.Second:  "about 30 seconds remain",
		70 * time.Second:  "about a minute remains",
		100 * time.Second: "about 2 minutes remain",
	} {
		if got := remains(left); got != want {
			t.Errorf("%s: %q, want %q", left, got, want)
		}
	}
}

// printed returns what a file gets of a build whose lines come a second apart.
func printed(t *testing.T, list func() (map[string]int64, error), lines ...string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	listed := make(chan struct{})
	p := newProgress(newScreen(file), func() (map[string]int64, error) {
		defer close(listed)
		return list()
	})
	clock := time.Unix(0, 0)
	p.now = func() time.Time { return clock }
	for _, line := range lines {
		p.line("linux", line)
		clock = clock.Add(time.Second)
		if p.began.IsZero() {
			continue
		}
		<-listed
		for p.mu.Lock(); p.weights == nil && !p.failed; p.mu.Lock() {
			p.mu.Unlock()
		}
		p.mu.Unlock()
	}
	p.finish()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestAFileGetsALineForEachFifthOfTheWork(t *testing.T) {
	var lines []string
	weights := map[string]int64{}
	for i := range 100 {
		name := strings.Repeat("p", i+1)
		lines, weights[key("linux", name)] = append(lines, name), 10
	}
	got := printed(t, func() (map[string]int64, error) { return weights, nil }, lines...)
	for _, want := range []string{" 20 % compiled, about a minute remains\n", " 40 % compiled", " 60 % compiled",
		" 80 % compiled, about 20 seconds remain\n", "100 % compiled"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > 7 {
		t.Errorf("a file got %d lines:\n%s", n, got)
	}
}

func TestComplaintsOfTheCompilerArePassedOn(t *testing.T) {
	got := printed(t, func() (map[string]int64, error) {
		return nil, errors.New("no list")
	}, "a", "# a", "a.go:1:2: undefined: x")
	for _, want := range []string{"# a\n", "a.go:1:2: undefined: x\n", "no list"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestModulesThatAreFetchedAreNoPackages(t *testing.T) {
	got := printed(t, nil, "go: downloading example.com/a v1.0.0", "go: downloading example.com/b v1.0.0")
	if want := "  fetching Go modules: 1 so far\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgramsAreChosenByName(t *testing.T) {
	chosen, err := choose([]string{"wicd.exe", "wmco"})
	if err != nil || len(chosen) != 2 || chosen[0].name != "wmco" {
		t.Errorf("got %v, %v; want wmco and wicd.exe, in the order of the table", chosen, err)
	}
	if _, err := choose([]string{"wmcp"}); err == nil || !strings.Contains(err.Error(), `"wmcp"`) ||
		!strings.Contains(err.Error(), "gotestsum") {
		t.Errorf("an unknown program gives %v, want an error that names it and those there are", err)
	}
}

func TestFIPSIsForWhatAClusterRuns(t *testing.T) {
	for _, p := range programs {
		if got := slices.Contains(p.environment(options{fips: true}), "GOFIPS140=v1.0.0"); got != p.product {
			t.Errorf("%s is built in FIPS mode: %t", p.name, got)
		}
	}
}

func TestKubernetesIsToldItsVersion(t *testing.T) {
	flags := strings.Join(kubernetesFlags(options{kubernetes: "v1.36.3"}), " ")
	for _, want := range []string{"gitVersion=v1.36.3", "gitMajor=1 ", "gitMinor=36"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is missing in %q", want, flags)
		}
	}
}
