package wine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

// Paths on the drive of a host.
const (
	labDir             = `C:\lab`
	sshdPath           = labDir + `\sshd.exe`
	labKeysPath        = labDir + `\authorized_keys` // the lab's own key: works even if a test removes all other keys
	refusedPath        = labDir + `\refused.jsonl`
	hostKeyPath        = `C:\ProgramData\ssh\ssh_host_ed25519_key`
	authorizedKeysPath = `C:\ProgramData\ssh\administrators_authorized_keys`
)

// drivePath returns the local path of a Windows path below a prefix. Windows names are case-insensitive:
// existing names match in any case, the remaining names keep the requested case.
func drivePath(prefix, windows string) (string, error) {
	rest, ok := cutDrive(windows)
	if !ok || strings.ContainsAny(rest, `/:*?"<>|`) {
		return "", fmt.Errorf(`%q is no absolute path on drive C:, such as C:\k\wicd.exe`, windows)
	}
	path := filepath.Join(prefix, "drive_c")
	for part := range strings.SplitSeq(rest, `\`) {
		if part == ".." || part == "." {
			return "", fmt.Errorf("%q is no plain path", windows)
		}
		if part != "" {
			path = filepath.Join(path, existingName(path, part))
		}
	}
	return path, nil
}

func cutDrive(windows string) (rest string, ok bool) {
	if len(windows) < 3 || !strings.EqualFold(windows[:3], `C:\`) {
		return "", false
	}
	return windows[3:], true
}

// existingName returns the name in the case that the directory has.
func existingName(dir, name string) string {
	if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
		return name
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return name
	}
	for _, entry := range entries {
		if strings.EqualFold(entry.Name(), name) {
			return entry.Name()
		}
	}
	return name
}

// Path returns the local path of a host file such as C:\k\wicd.exe.
func (h *Host) Path(windows string) (string, error) {
	return drivePath(filepath.Join(h.dir, wire.PrefixDir), windows)
}

// vacatePath returns the local path of a Windows path below a prefix. It creates the directories and removes
// the file, because the file may be a hard link to a base file.
func vacatePath(prefix, windows string) (string, error) {
	path, err := drivePath(prefix, windows)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return path, nil
}

// copyToDrive copies a local file to a Windows path below a prefix and creates missing directories.
func copyToDrive(prefix, local, windows string) error {
	path, err := vacatePath(prefix, windows)
	if err != nil {
		return err
	}
	if err := copyFile(local, path); err != nil {
		return fmt.Errorf("put %s in place: %w", windows, err)
	}
	return nil
}

// linkProgram links a lab program into the prefix. All hosts share one copy.
func linkProgram(prefix, local, windows string) error {
	path, err := vacatePath(prefix, windows)
	if err != nil {
		return err
	}
	return os.Link(local, path)
}

// writeFile writes a file at a Windows path below a prefix and creates missing directories.
func writeFile(prefix, windows string, content []byte) error {
	path, err := vacatePath(prefix, windows)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Refused returns the command lines of calls to stub programs: PowerShell, netsh, dism and so on. Product code
// must never call a stub.
func (h *Host) Refused() ([]string, error) {
	path, err := h.Path(refusedPath)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var refused []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call struct {
			CommandLine string `json:"commandLine"`
		}
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return refused, fmt.Errorf("read %s of the host: %w", refusedPath, err)
		}
		refused = append(refused, call.CommandLine)
	}
	return refused, lines.Err()
}
