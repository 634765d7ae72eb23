package wine

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/linuxns"
	labprocess "github.com/windows-machine-config/wmco/lab/process"
)

var (
	// base is the base of all hosts of the tests.
	base *Base
	// guest is the program that the tests run on hosts.
	guest string
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if err := Available(); err != nil {
		fmt.Printf("SKIPPED: all tests of Wine hosts: %v\n", err)
		return 0
	}
	if os.Getenv(makerVariable) != "" { // in the namespace of the tests
		return playMaker()
	}
	if err := prepareTests(); err != nil { // also outside: the Debian archive is reachable there
		fmt.Println(err)
		return 1
	}
	// A separate network: tests of other packages may use the same addresses.
	return linuxns.RunTests(linuxns.Config{GracePeriod: 30 * time.Second}, m.Run)
}

func prepareTests() (err error) {
	ctx := context.Background()
	if base, err = Prepare(ctx, ""); err != nil {
		return err
	}
	repository, err := labprocess.Repository()
	if err != nil {
		return err
	}
	guest, err = buildProgram(ctx, repository, "windows", "internal/guest", filepath.Join(base.Dir, binDir))
	return err
}

// newHost creates and boots a host with the guest as C:\guest.exe.
func newHost(t *testing.T, options Options) *Host {
	t.Helper()
	options.Base = base
	options.Files = map[string]string{`C:\guest.exe`: guest}
	h, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("journal of %s: %v%s", h.Name(), h.Journal(), h.consoleEnd())
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func hostAddress(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 8, 0, n}) }

// run runs a command that must succeed, and returns the output without the final line break.
func run(t *testing.T, h *Host, line string) string {
	t.Helper()
	result, err := h.Exec(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != 0 {
		t.Fatalf("%s: exit code %d: %s%s", line, result.ExitCode, result.Stdout, result.Stderr)
	}
	return strings.TrimRight(result.Stdout, "\r\n")
}
