package contract_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/lab/namespace"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// productPackages are the packages of the product.
var productPackages = []string{"./api/...", "./cmd/...", "./internal/..."}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain gives the tests a network of their own: those of another checkout use the same addresses. There is no way
// out of it to Debian's archive and to Go's modules, so what hosts and test programs are made of is fetched before.
func testMain(m *testing.M) int {
	if wine.Available() != nil {
		return m.Run() // each test says so
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
	return namespace.RunTests(namespace.Config{Grace: 30 * time.Second}, m.Run)
}
