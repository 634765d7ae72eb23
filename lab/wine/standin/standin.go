// Package standin builds replacements in a Wine prefix for parts of Windows that Wine lacks. It provides
// libraries for the Host Compute Network API, the DISM API, the COM classes of the firewall and of Defender's
// WMI namespace, routes, symbolic links and access lists, and the programs of a Windows node. The sources are C
// in the directory c. The head comment of each library's main file lists the simulated and the missing
// behavior, and faults.h the calls that fail on request. Behavior on these libraries counts as shown on a fake,
// not as proven.
package standin

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Compiler is the C compiler, from the Debian package CompilerPackage.
const (
	Compiler        = "x86_64-w64-mingw32-gcc"
	CompilerPackage = "gcc-mingw-w64-x86-64"
)

// importer creates import libraries. It is part of the compiler's package.
const importer = "x86_64-w64-mingw32-dlltool"

// ErrNoCompiler means that the compiler is not installed.
var ErrNoCompiler = errors.New(Compiler + " is not installed: run apt-get install " + CompilerPackage)

// System32 is the directory of the libraries in a prefix.
const System32 = `C:\windows\system32`

//go:embed c
var sources embed.FS

// Registry is a registry file to import into the prefix with regedit /S: the COM classes, the optional features
// and the firewall rules of a new Windows Server.
//
//go:embed standin.reg
var Registry []byte

// library is one DLL with its sources (the first contains the description) and the required import libraries.
type library struct {
	name    string
	sources []string
	imports []string
	// bare is a library without the C runtime, which imports only the functions in kernelbase.def and the C
	// functions of ntdll.dll.
	bare bool
}

var libraries = []library{
	{"computenetwork.dll", []string{"computenetwork.c", "objects.c", "addresses.c", "store.c", "json.c", "features.c",
		"faults.c", "computenetwork.def"}, []string{"ole32"}, false},
	{"vmcompute.dll", []string{"vmcompute.c", "objects.c", "addresses.c", "store.c", "json.c", "features.c",
		"faults.c", "vmcompute.def"}, []string{"ole32"}, false},
	{"dismapi.dll", []string{"dismapi.c", "features.c", "dismapi.def"}, nil, false},
	{"wmco-lab-firewall.dll", []string{"firewall.c", "automation.c", "enumerator.c", "rules.c", "faults.c",
		"firewall.def"}, []string{"ole32", "oleaut32", "uuid"}, false},
	{"wmco-lab-wmi.dll", []string{"wmi.c", "defender.c", "faults.c", "wmi.def"},
		[]string{"ole32", "oleaut32", "uuid"}, false},
	{servicesLibrary + ".dll", []string{"servicecontrol.c", "services.def"}, nil, false},
	{eventsLibrary + ".dll", []string{"eventlog.c", "eventlog.def"}, nil, false},
	{powerLibrary + ".dll", []string{"power.c", "faults.c", "power.def"}, nil, false},
	{routesLibrary + ".dll", []string{"routes.c", "routes.def"}, nil, false},
	{ntfsLibrary + ".dll", []string{"links.c", "native.c", "access.c", "unix.c", "ntfs.def"},
		[]string{"kernelbase", "ntdllcrt", "ntdll", "gcc"}, true},
}

// launcher is built like the libraries, but is a program.
var launcher = library{name: Launcher, sources: []string{"launcher.c"}}

// Libraries returns the file names of the libraries for System32. Wine has no libraries with these names, so no
// entry in DllOverrides is needed.
func Libraries() []string {
	names := make([]string, 0, len(libraries))
	for _, l := range libraries {
		names = append(names, l.name)
	}
	return names
}

// Build compiles the libraries and the launcher into a directory, which must exist. The same compiler produces
// the same bytes. Build returns ErrNoCompiler if the compiler is missing.
func Build(ctx context.Context, directory string) error {
	return buildLibraries(ctx, directory, append(slices.Clone(libraries), launcher))
}

func buildLibraries(ctx context.Context, directory string, selected []library) error {
	compiler, err := exec.LookPath(Compiler)
	if err != nil {
		return fmt.Errorf("build the stand-ins for Windows' libraries: %w", ErrNoCompiler)
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return fmt.Errorf("build the stand-ins for Windows' libraries: %w", err)
	}
	buildDir, err := os.MkdirTemp("", "wmco-standin-")
	if err != nil {
		return fmt.Errorf("build the stand-ins for Windows' libraries: %w", err)
	}
	defer os.RemoveAll(buildDir)
	if err := os.CopyFS(buildDir, sources); err != nil {
		return fmt.Errorf("build the stand-ins for Windows' libraries: %w", err)
	}
	for _, l := range selected {
		if err := l.buildFile(ctx, compiler, filepath.Join(buildDir, "c"), directory); err != nil {
			return fmt.Errorf("build %s: %w", l.name, err)
		}
	}
	return nil
}

// buildFile compiles in the directory of the sources, so that the library contains no path.
func (l library) buildFile(ctx context.Context, compiler, buildDir, directory string) error {
	args := []string{"-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-s", "-Wl,--no-insert-timestamp", "-o", l.name}
	if strings.HasSuffix(l.name, ".dll") {
		args = append(args, "-shared")
	}
	if l.bare {
		if err := run(ctx, buildDir, importer, "-k", "-d", "kernelbase.def", "-l", "libkernelbase.a"); err != nil {
			return err
		}
		args = append(args, "-nostdlib", "-Wl,-e,DllMain", "-L.")
	}
	args = append(args, l.sources...)
	for _, name := range l.imports {
		args = append(args, "-l"+name)
	}
	if err := run(ctx, buildDir, compiler, args...); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(buildDir, l.name))
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(directory, l.name), content)
}

func run(ctx context.Context, directory, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = directory
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, output)
	}
	return nil
}

// replaceFile writes a file atomically: a running host never loads an incomplete library.
func replaceFile(path string, content []byte) error {
	draft := path + ".new"
	if err := os.WriteFile(draft, content, fs.FileMode(0o755)); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
