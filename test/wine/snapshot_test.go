package wine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
	firewallKey    = servicesKey + `\SharedAccess\Parameters\FirewallPolicy\FirewallRules`
	// certificatesKey contains the machine's certificates.
	certificatesKey = `HKLM\Software\Microsoft\SystemCertificates`
	// featuresKey is where the simulated DISM stores the states of Windows' features. hnsDirectory is where the
	// simulated Host Compute Network stores networks and endpoints, one file each.
	featuresKey        = `HKLM\Software\wmco-lab\features`
	pendingFeaturesKey = `HKLM\SOFTWARE\wmco-lab\pending`
	hnsDirectory       = `C:\ProgramData\wmco-lab\hns`
)

// snapshot is the state of a host: files and directories with a digest of their content, services, machine
// environment, certificates, features, networks, and running programs.
type snapshot struct {
	Files        map[string]string
	Services     []string
	Environment  []string
	Firewall     []string
	Certificates []string
	Features     []string
	Networks     []string // and endpoints
	Processes    []string // file names
}

// volatile lists directories of Windows with independent changes.
var volatile = []string{`windows`, `users`, `programdata/ssh`, `programdata/microsoft`, `programdata/wmco-lab`}

func snapshotOf(t *testing.T, h *wine.Host) snapshot {
	t.Helper()
	return snapshot{
		Files: fileDigests(t, h), Services: registryLines(t, h, servicesKey), Environment: registryLines(t, h, environmentKey),
		Firewall: registryLines(t, h, firewallKey), Certificates: registryLines(t, h, certificatesKey), Features: featureStates(t, h),
		Networks: networkObjects(t, h), Processes: processNames(t, h),
	}
}

// featureStates returns the states of Windows' features. A state that the simulated DISM stores as pending is in effect
// after the boot that has deleted the mark.
func featureStates(t *testing.T, h *wine.Host) []string {
	t.Helper()
	lines := registryLines(t, h, featuresKey)
	marks, err := h.Exec(t.Context(), `reg query "`+pendingFeaturesKey+`" /s`)
	requireNoError(t, err)
	if marks.ExitCode == 0 {
		t.Errorf("features of %s wait for a restart: %s", h.Name(), marks.Stdout)
		return lines
	}
	inForce := strings.NewReplacer("State    REG_DWORD    0x1", "State    REG_DWORD    0x2", "State    REG_DWORD    0x5",
		"State    REG_DWORD    0x4")
	for i := range lines {
		lines[i] = inForce.Replace(lines[i])
	}
	return lines
}

// networkObjects returns the host's HNS networks and endpoints.
func networkObjects(t *testing.T, h *wine.Host) []string {
	t.Helper()
	var found []string
	for _, kind := range []string{"networks", "endpoints"} {
		dir, err := h.Path(hnsDirectory + `\` + kind)
		requireNoError(t, err)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, entry := range entries {
			found = append(found, kind+"/"+entry.Name())
		}
	}
	return found
}

// transient lists programs that run only during a connection, or at times chosen by Windows.
var transient = []string{"administrator.exe", "cmd.exe", "conhost.exe", "reg.exe"}

// processNames returns the file names of the running programs, without duplicates.
func processNames(t *testing.T, h *wine.Host) []string {
	t.Helper()
	result, err := h.Exec(t.Context(), administratorPath+" processes")
	requireNoError(t, err)
	var names []string
	if err := json.Unmarshal([]byte(result.Stdout), &names); err != nil {
		t.Fatalf("list the processes of %s: %v: %+v", h.Name(), err, result)
	}
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return slices.Contains(transient, name) })
}

func fileDigests(t *testing.T, h *wine.Host) map[string]string {
	t.Helper()
	root, err := h.Path(`C:\`)
	requireNoError(t, err)
	found := map[string]string{}
	requireNoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
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

// registryLines returns the lines of a key and its subkeys.
func registryLines(t *testing.T, h *wine.Host, key string) []string {
	t.Helper()
	result, err := h.Exec(t.Context(), `reg query "`+key+`" /s`)
	requireNoError(t, err)
	if result.ExitCode != 0 {
		t.Fatalf("reg query %s on %s: %+v", key, h.Name(), result)
	}
	lines := strings.Split(strings.ReplaceAll(result.Stdout, "\r", ""), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// formatHostReport returns a report about a host for a failed test.
func formatHostReport(h *wine.Host) string {
	refused, _ := h.Refused()
	text := "refused: " + strings.Join(refused, "; ")
	journal := h.Journal()
	for _, entry := range journal[max(0, len(journal)-30):] {
		text += fmt.Sprintf("\n%s %s %.200s", entry.Time.Format("15:04:05.000"), entry.Kind, entry.Detail)
	}
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
