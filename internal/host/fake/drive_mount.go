package fake

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// mount is a directory of the drive backed by a real directory. It exists while the real directory exists.
type mount struct {
	names  []string // of the directory on the drive
	real   string   // absolute
	access map[string]host.Access
}

// MountDirectory backs a directory of the drive by a real directory, for programs that use the file system of their
// build platform. Creating or removing the directory on the drive creates or removes the real directory. Absolute
// link targets are translated in both directions. MountDirectory panics if a path is not absolute.
func (m *Machine) MountDirectory(path, realDirectory string) {
	names, err := splitPath(path)
	if err != nil || len(names) == 0 || !filepath.IsAbs(realDirectory) {
		panic(fmt.Sprintf("mount %s at %s: both paths must be absolute (%v)", realDirectory, path, err))
	}
	m.lock()
	defer m.unlock()
	m.drive.mounts = append(m.drive.mounts,
		&mount{names: names, real: filepath.Clean(realDirectory), access: map[string]host.Access{}})
}

// RealPath returns the real path behind a path at or below a mounted directory, with links resolved. It returns false
// for other paths, and for paths that neither exist nor can be created.
func (m *Machine) RealPath(path string) (string, bool) {
	m.lock()
	defer m.unlock()
	at, err := m.drive.resolvePath(path, true)
	return at.real, err == nil && at.mount != nil
}

// mountAt returns the mount at exactly these names.
func (d *drive) mountAt(names []string) *mount {
	for _, m := range d.mounts {
		if slices.EqualFunc(m.names, names, strings.EqualFold) {
			return m
		}
	}
	return nil
}

// mountsBelow returns the mounts below a directory if the real directories exist.
func (d *drive) mountsBelow(folder []string) []*mount {
	var below []*mount
	for _, m := range d.mounts {
		if len(m.names) > len(folder) && slices.EqualFunc(m.names[:len(folder)], folder, strings.EqualFold) && m.hasRealDirectory() {
			below = append(below, m)
		}
	}
	return below
}

func (m *mount) hasRealDirectory() bool {
	found, err := os.Stat(m.real)
	return err == nil && found.IsDir()
}

// statReal returns the information of a real file. Links are not followed, unless the mounted directory itself is a
// link.
func (m *mount) statReal(onDisk string) (fs.FileInfo, error) {
	if onDisk == m.real {
		return os.Stat(onDisk)
	}
	return os.Lstat(onDisk)
}

// childPath returns the real path of a name in a real directory, ignoring case.
func (m *mount) childPath(folder, name string) string {
	exact := filepath.Join(folder, name)
	if _, err := os.Lstat(exact); err == nil {
		return exact
	}
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if strings.EqualFold(entry.Name(), name) {
			return filepath.Join(folder, entry.Name())
		}
	}
	return exact
}

func (m *mount) fileInfo(at resolvedPath) host.FileInfo {
	info := host.FileInfo{
		Path: at.fullPath(), Name: at.lastName(), Directory: at.found.IsDir(), Modified: at.found.ModTime(),
		Access: host.AccessInherited,
	}
	if at.found.Mode().IsRegular() {
		info.Size = at.found.Size()
	}
	if at.found.Mode()&fs.ModeSymlink != 0 {
		info.LinkTarget = m.linkTarget(at.real)
	}
	if access, ok := m.access[foldCase(info.Path)]; ok {
		info.Access = access
	}
	return info
}

// linkTarget returns the target of a real link as a path of the drive.
func (m *mount) linkTarget(onDisk string) string {
	target, err := os.Readlink(onDisk)
	if err != nil {
		return ""
	}
	if inside, err := filepath.Rel(m.real, target); err == nil && filepath.IsLocal(inside) {
		target = filepath.Join(joinPath(m.names), inside)
	}
	return strings.ReplaceAll(target, "/", `\`)
}

// realTarget returns the target of a link on the drive as a real path.
func (m *mount) realTarget(target string) (string, error) {
	if len(target) < 2 || target[1] != ':' {
		return filepath.FromSlash(strings.ReplaceAll(target, `\`, "/")), nil
	}
	names, err := splitPath(target)
	if err != nil {
		return "", err
	}
	if len(names) < len(m.names) || !slices.EqualFunc(names[:len(m.names)], m.names, strings.EqualFold) {
		return "", fmt.Errorf("%s is outside of the mounted directory %s", target, joinPath(m.names))
	}
	return filepath.Join(m.real, filepath.Join(names[len(m.names):]...)), nil
}

func (m *mount) setAccess(path string, access host.Access) {
	if access == "" || access == host.AccessInherited {
		delete(m.access, foldCase(path))
		return
	}
	m.access[foldCase(path)] = access
}

// forgetAccess deletes the recorded access of a path and its descendants.
func (m *mount) forgetAccess(path string) {
	for kept := range m.access {
		if kept == foldCase(path) || strings.HasPrefix(kept, foldCase(path)+`\`) {
			delete(m.access, kept)
		}
	}
}

// list returns the entries of a mounted directory.
func (m *mount) list(at resolvedPath) ([]host.FileInfo, error) {
	entries, err := os.ReadDir(at.real)
	if err != nil {
		return nil, err
	}
	infos := make([]host.FileInfo, 0, len(entries))
	for _, entry := range entries {
		found, err := entry.Info()
		if err != nil {
			continue // removed in the meantime
		}
		names := append(at.names[:len(at.names):len(at.names)], entry.Name())
		infos = append(infos, m.fileInfo(resolvedPath{names: names, mount: m, real: filepath.Join(at.real, entry.Name()), found: found}))
	}
	return infos, nil
}
