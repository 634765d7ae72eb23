package main

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// operatorPackage is the main package that identifies the operator.
const operatorPackage = "github.com/windows-machine-config/wmco/cmd/wmco"

// machines maps the supported platforms to the machine types in program headers.
var machines = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// operatorFlag is a flag that is set once for each platform.
type operatorFlag []operator

// operator is the operator's program for one platform.
type operator struct {
	platform v1.Platform
	file     string
	version  string
	info     *buildinfo.BuildInfo
}

// String implements flag.Value.
func (f *operatorFlag) String() string { return fmt.Sprint(len(*f)) }

// Set implements flag.Value.
func (f *operatorFlag) Set(value string) error {
	platform, file, ok := strings.Cut(value, "=")
	if !ok || file == "" {
		return errors.New("it is not platform=file")
	}
	if _, known := machines[platform]; !known {
		return fmt.Errorf("there is no platform %s: the platforms are linux/amd64 and linux/arm64", platform)
	}
	goos, architecture, _ := strings.Cut(platform, "/")
	p := v1.Platform{OS: goos, Architecture: architecture}
	if slices.ContainsFunc(*f, func(o operator) bool { return o.platform.Equals(p) }) {
		return fmt.Errorf("platform %s is given twice", platform)
	}
	*f = append(*f, operator{platform: p, file: file})
	return nil
}

// readOperators checks that each program is the operator for the right platform and runs in an image without
// libraries. The programs are returned ordered by platform.
func readOperators(operators []operator, version string) ([]operator, error) {
	if len(operators) == 0 || version == "" {
		return nil, errors.New("the operator's program or its version is not given")
	}
	checked := slices.Clone(operators)
	for i, o := range checked {
		info, err := inspectOperator(o)
		if err != nil {
			return nil, fmt.Errorf("the operator for %s: %w", o.platform, err)
		}
		checked[i].info, checked[i].version = info, version
	}
	slices.SortFunc(checked, func(a, b operator) int { return strings.Compare(a.platform.String(), b.platform.String()) })
	return checked, nil
}

func inspectOperator(o operator) (*buildinfo.BuildInfo, error) {
	file, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("%w: build it with `make build`", err)
	}
	defer file.Close()
	program, err := elf.NewFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a program for Linux: %w", o.file, err)
	}
	if want := machines[o.platform.String()]; program.Machine != want {
		return nil, fmt.Errorf("%s is for another architecture: it has %s, not %s", o.file, program.Machine, want)
	}
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, fmt.Errorf("%s needs libraries, which the image does not have: build it with CGO_ENABLED=0", o.file)
	}
	info, err := buildinfo.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.file, err)
	}
	if info.Path != operatorPackage {
		return nil, fmt.Errorf("%s is %s and not %s", o.file, info.Path, operatorPackage)
	}
	return info, nil
}
