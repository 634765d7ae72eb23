package wine

import (
	_ "embed" // for userRegistry
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// userRegistry is added to HKEY_CURRENT_USER of every host, so that the stubs override the programs of Wine.
//
//go:embed registry/user.reg
var userRegistry string

// addToRegistry adds keys and values to a registry file of a prefix that no Wine process uses. The last of
// several values with one name wins, so that additions need no check for existing values.
func addToRegistry(file string, additions ...string) error {
	registry, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("open the registry: %w", err)
	}
	_, err = registry.WriteString("\n" + strings.Join(additions, "\n") + "\n")
	if closeErr := registry.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("add to the registry: %w", err)
	}
	return nil
}

// formatRegistry returns the identity in Wine's registry format.
func (i Identity) formatRegistry() string {
	var b strings.Builder
	b.WriteString("[Software\\\\Microsoft\\\\Windows NT\\\\CurrentVersion]\n")
	for _, value := range []struct{ name, text string }{
		{"CurrentBuild", strconv.Itoa(i.Build)}, {"CurrentBuildNumber", strconv.Itoa(i.Build)},
		{"DisplayVersion", i.DisplayVersion},
		{"EditionID", i.EditionID}, {"InstallationType", "Server"}, {"ProductName", i.ProductName},
		{"ReleaseId", i.ReleaseID},
	} {
		if value.text != "" {
			fmt.Fprintf(&b, "%q=%q\n", value.name, value.text)
		}
	}
	fmt.Fprintf(&b, "\"UBR\"=dword:%08x\n", i.Revision)
	b.WriteString("\n[System\\\\ControlSet001\\\\Control\\\\ProductOptions]\n\"ProductType\"=\"ServerNT\"\n")
	return b.String()
}

// hostName returns the host name of the first boot. Wine writes the name of each boot to the same value, as do
// programs that set a name for the next boot. See lab/wine/machine.
func hostName(name string) string {
	return fmt.Sprintf("[System\\\\ControlSet001\\\\Services\\\\Tcpip\\\\Parameters]\n\"Hostname\"=%q\n", name)
}

// machineGUID returns a unique identity for a host: clones have the identity of the base.
func machineGUID(rand io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", fmt.Errorf("make the machine's GUID: %w", err)
	}
	return fmt.Sprintf("[Software\\\\Microsoft\\\\Cryptography]\n\"MachineGuid\"=\"%x-%x-%x-%x-%x\"\n", b[:4], b[4:6],
		b[6:8], b[8:10], b[10:]), nil
}
