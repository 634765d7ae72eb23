package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/pe"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// checkBuildInfo compares the build information of an executable with the table and with go.sum. It returns the
// version of Go.
func checkBuildInfo(file string, e Executable, m Module, sums map[string]string) (string, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	var faults []error
	expect := func(what, got, want string) {
		if got != want {
			faults = append(faults, fmt.Errorf("%s: its build information says %s %q, and it must be %q",
				e.Output, what, got, want))
		}
	}
	expect("package", info.Path, e.Package)
	expect("module", info.Main.Path, m.Path)
	expect("version", info.Main.Version, m.Version.Version)
	expect("sum", info.Main.Sum, m.Sum)
	for name, want := range map[string]string{"GOOS": "windows", "GOARCH": "amd64", "CGO_ENABLED": "0",
		"-trimpath": "true"} {
		expect(name, buildSetting(info, name), want)
	}
	for _, dependency := range info.Deps {
		module := dependency.Path + "@" + dependency.Version
		if dependency.Replace != nil {
			faults = append(faults, fmt.Errorf("%s: module %s is replaced", e.Output, module))
			continue
		}
		expect("sum of "+module, dependency.Sum, sums[module])
	}
	return info.GoVersion, errors.Join(faults...)
}

func buildSetting(info *debug.BuildInfo, name string) string {
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == name })
	if i < 0 {
		return ""
	}
	return info.Settings[i].Value
}

// checkVariables searches an executable for the values of the version variables. It returns the number of
// variables, which is zero for a program without version.
//
// Every Go executable contains the version in the build information and in the names of source files, which is no
// proof. The linker writes the value of a variable set by -X as a separate string with a terminating zero byte,
// once for each variable. For a variable that does not exist or is not used, the linker writes nothing and reports
// no error.
func checkVariables(file string, e Executable, v Version) (int, error) {
	variables, err := e.linkVariables(v)
	if err != nil {
		return 0, err
	}
	expected, count := map[string]int{}, 0
	for name, text := range e.Variables {
		if strings.Contains(text, "{{.Version}}") || strings.Contains(text, "{{.Number}}") {
			expected[variables[name]]++
			count++
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var faults []error
	for value, want := range expected {
		if got := countLinked(content, value); got < want {
			faults = append(faults,
				fmt.Errorf("%s: the linker was told to set %d variables to %s and has set %d: the others do not exist or are not used",
					e.Output, want, value, got))
		}
	}
	return count, errors.Join(faults...)
}

// countLinked counts the strings that equal the value: in the build information a tab precedes a version, in file
// names an @.
func countLinked(content []byte, value string) int {
	count, pattern := 0, []byte(value+"\x00")
	for at := 0; ; {
		i := bytes.Index(content[at:], pattern)
		if i < 0 {
			return count
		}
		if start := at + i; start == 0 || !strings.ContainsRune("\t@", rune(content[start-1])) {
			count++
		}
		at += i + len(pattern)
	}
}

// checkExecutable checks that a file is a Windows program for amd64.
func checkExecutable(file string) error {
	parsed, err := pe.Open(file)
	if err != nil {
		return fmt.Errorf("%s is not a Windows program: %w", file, err)
	}
	defer parsed.Close()
	if parsed.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		return fmt.Errorf("%s is a Windows program for another machine (%#x) than amd64", file, parsed.Machine)
	}
	return nil
}
