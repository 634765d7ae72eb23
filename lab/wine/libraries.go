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

// fakeDLLRegistry is the name of the registry file of the fake libraries while a prefix is created: at the top
// of the prefix, outside of drive C:.
const fakeDLLRegistry = "standin.reg"

// patchedDir is a root with the patched libraries of Wine, below the directory of the fake libraries.
const patchedDir = "root"

// buildLibraries builds the fake DLLs for features that Wine lacks, unless they are up to date. Wine's
// libraries that must forward to the fakes are patched in a copy, because the chroot must not change and a
// Windows installation is created without fakes.
func (b *Base) buildLibraries(ctx context.Context, repository string) error {
	sources, err := filepath.Glob(filepath.Join(repository, "lab/wine/standin/c/*"))
	if err != nil {
		return err
	}
	// The package contains the compiler flags and the list of patches.
	code, err := filepath.Glob(filepath.Join(repository, "lab/wine/standin/*.go"))
	if err != nil {
		return err
	}
	code = slices.DeleteFunc(code, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	digest, err := digestFiles(slices.Concat(sources, code, wineLibraries(b.Root))...)
	if err != nil {
		return err
	}
	b.FakeDLLs = filepath.Join(b.Dir, "standin-"+digest)
	if _, err := os.Stat(b.FakeDLLs); err == nil {
		return nil
	}
	temp, err := os.MkdirTemp(b.Dir, ".standin-")
	if err != nil {
		return err
	}
	err = standin.Build(ctx, temp)
	if err == nil {
		err = b.patchWine(filepath.Join(temp, patchedDir))
	}
	if err == nil {
		err = os.Rename(temp, b.FakeDLLs)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}

// wineLibraries returns the paths of the patched Wine libraries below a root.
func wineLibraries(root string) []string {
	var files []string
	for _, name := range standin.PatchedLibraries() {
		files = append(files, filepath.Join(root, standin.WineLibraries, name))
	}
	return files
}

// patchWine creates the patched libraries below another root.
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

// rootOverlays returns the files that replace files of the chroot in hosts, by path in the chroot.
func (b *Base) rootOverlays() map[string]string {
	overlays := map[string]string{}
	for i, inRoot := range wineLibraries("/") {
		overlays[inRoot] = wineLibraries(filepath.Join(b.FakeDLLs, patchedDir))[i]
	}
	return overlays
}

// libraryFiles returns the paths of the built libraries.
func (b *Base) libraryFiles() []string {
	var files []string
	for _, name := range standin.Libraries() {
		files = append(files, filepath.Join(b.FakeDLLs, name))
	}
	return files
}

// installLibraries links the libraries into a prefix. Hosts share the files.
func (b *Base) installLibraries(prefix string) error {
	for _, file := range b.libraryFiles() {
		if err := linkProgram(prefix, file, standin.System32+`\`+filepath.Base(file)); err != nil {
			return err
		}
	}
	return nil
}
