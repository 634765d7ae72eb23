package contract_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/wine"
)

var productPackages = []string{"./api/...", "./cmd/...", "./internal/..."}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain runs the tests in a separate network, because tests of another checkout use the same addresses. Debian's
// archive and Go's modules cannot be reached from this network, so the dependencies of hosts and test programs are
// fetched before.
func testMain(m *testing.M) int {
	if wine.Available() != nil {
		return m.Run() // each test reports this
	}
	ctx := context.Background()
	if _, err := wine.Prepare(ctx, ""); err != nil {
		fmt.Println(err)
		return 1
	}
	list := forWindows(ctx, append([]string{"list", "-deps", "-test"}, productPackages...)...)
	if output, err := list.CombinedOutput(); err != nil {
		fmt.Printf("find what the tests for Windows are made of: %v\n%s\n", err, output)
		return 1
	}
	return linuxns.RunTests(linuxns.Config{GracePeriod: 30 * time.Second}, m.Run)
}
