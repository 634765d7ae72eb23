package wine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

// standInRegistry is where the registry of the stand-ins lies in a prefix while it is made: at its top, outside of
// drive C:.
const standInRegistry = "standin.reg"

// patchedDir is below the folder of the stand-ins: a root with those of Wine's own libraries that lead to a stand-in.
const patchedDir = "root"

// buildLibraries builds the DLLs that stand in for what Wine lacks, unless they are built already. Wine's own libraries
// that must lead to them are patched in a copy: the chroot is as Debian made it, and a Windows installation is made
// without stand-ins.
func (b *Base) buildLibraries(ctx context.Context, repository string) error {
	sources, err := filepath.Glob(filepath.Join(repository, "lab/wine/standin/c/*"))
	if err != nil {
		return err
	}
	// The package has the compiler's flags, and what is patched.
	code, err := filepath.Glob(filepath.Join(repository, "lab/wine/standin/*.go"))
	if err != nil {
		return err
	}
	code = slices.DeleteFunc(code, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	digest, err := digestFiles(slices.Concat(sources, code, wineLibraries(b.Root))...)
	if err != nil {
		return err
	}
	b.StandIns = filepath.Join(b.Dir, "standin-"+digest)
	if _, err := os.Stat(b.StandIns); err == nil {
		return nil
	}
	aside, err := os.MkdirTemp(b.Dir, ".standin-")
	if err != nil {
		return err
	}
	err = standin.Build(ctx, aside)
	if err == nil {
		err = b.patchWine(filepath.Join(aside, patchedDir))
	}
	if err == nil {
		err = os.Rename(aside, b.StandIns)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(aside))
	}
	return nil
}

// wineLibraries returns the libraries of Wine's own below a root that are patched.
func wineLibraries(root string) []string {
	var files []string
	for _, name := range standin.PatchedLibraries() {
		files = append(files, filepath.Join(root, standin.WineLibraries, name))
	}
	return files
}

// patchWine makes the patched libraries below another root.
func (b *Base) patchWine(root string) error {
	if err := os.MkdirAll(filepath.Join(root, standin.WineLibraries), 0o755); err != nil {
		return err
	}
	for i, patched := range wineLibraries(root) {
		if err := copyFile(wineLibraries(b.Root)[i], patched); err != nil {
			return err
		}
	}
	return standin.PatchWine(root)
}

// overlays returns the files that hosts see in place of the chroot's, by path in the chroot.
func (b *Base) overlays() map[string]string {
	overlays := map[string]string{}
	for i, inRoot := range wineLibraries("/") {
		overlays[inRoot] = wineLibraries(filepath.Join(b.StandIns, patchedDir))[i]
	}
	return overlays
}

// libraryFiles returns the built libraries.
func (b *Base) libraryFiles() []string {
	var files []string
	for _, name := range standin.Libraries() {
		files = append(files, filepath.Join(b.StandIns, name))
	}
	return files
}

// putLibraries puts the libraries into a prefix. Hosts share them.
func (b *Base) putLibraries(prefix string) error {
	for _, file := range b.libraryFiles() {
		if err := linkProgram(prefix, file, standin.System32+`\`+filepath.Base(file)); err != nil {
			return err
		}
	}
	return nil
}
