package wine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine"
)

// Keys of the registry.
const (
	servicesKey    = `HKLM\System\CurrentControlSet\Services`
	environmentKey = `HKLM\System\CurrentControlSet\Control\Session Manager\Environment`
)

// snapshot is what a host is like: files and folders of its drive with a digest of their content, services, machine environment,
// and the programs that run from our folders.
type snapshot struct {
	Files       map[string]string
	Services    []string
	Environment []string
}

// volatile are folders of Windows that change by themselves.
var volatile = []string{`windows`, `users`, `programdata/ssh`, `programdata/microsoft`, `programdata/wmco-lab`}

func snapshotOf(t *testing.T, h *wine.Host) snapshot {
	t.Helper()
	return snapshot{Files: files(t, h), Services: registry(t, h, servicesKey), Environment: registry(t, h, environmentKey)}
}

func files(t *testing.T, h *wine.Host) map[string]string {
	t.Helper()
	root, err := h.Path(`C:\`)
	must(t, err)
	found := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch lower := strings.ToLower(filepath.ToSlash(name)); {
		case slices.Contains(volatile, lower):
			return fs.SkipDir
		case entry.IsDir():
			found[lower] = "folder"
		case entry.Type()&fs.ModeSymlink != 0:
			found[lower], err = os.Readlink(path)
		default:
			var content []byte
			content, err = os.ReadFile(path)
			sum := sha256.Sum256(content)
			found[lower] = hex.EncodeToString(sum[:])
		}
		return err
	}))
	return found
}

// registry are the lines of a key with all below it.
func registry(t *testing.T, h *wine.Host, key string) []string {
	t.Helper()
	result, err := h.Exec(t.Context(), `reg query "`+key+`" /s`)
	must(t, err)
	if result.ExitCode != 0 {
		t.Fatalf("reg query %s on %s: %+v", key, h.Name(), result)
	}
	lines := strings.Split(strings.ReplaceAll(result.Stdout, "\r", ""), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// report is what a failed test wants to know of a host.
func report(h *wine.Host) string {
	refused, _ := h.Refused()
	text := "refused: " + strings.Join(refused, "; ")
	root, err := h.Path(`C:\var\log`)
	if err != nil {
		return text
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			content, _ := os.ReadFile(path)
			text += "\n" + path + ":\n" + string(content[max(0, len(content)-2000):])
		}
		return nil
	})
	return text
}
