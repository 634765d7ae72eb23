// Package image verifies that the operator's image and the manifests of deploy/ match. It starts the image of `make
// image` as a kubelet would, with the Deployment that `make deploy` has applied to a real API server.
package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

const (
	root = "../.."
	// imageProgram and releaseProgram pass the paths of hack/image and hack/release to the tests.
	imageProgram   = "WMCO_TEST_IMAGE_PROGRAM"
	releaseProgram = "WMCO_TEST_RELEASE_PROGRAM"
	// Address of the lab's API server in the network of the tests.
	apiAddress = "10.9.255.254"
	apiPort    = "6443"
	apiName    = "api-int.lab.example.com"
)

// TestMain runs the tests in a separate network, where the operator reaches hosts by address. The same program
// also acts as the container's first process and as kubectl.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(containerVariable) != "":
		fmt.Fprintln(os.Stderr, "start the container:", enterContainer(os.Getenv(containerVariable)))
		os.Exit(1)
	case os.Getenv(kubectlVariable) != "":
		os.Exit(runKubectl())
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if !linuxns.IsInside() {
		remove, err := buildPrograms()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer remove()
	}
	api := netip.MustParseAddr(apiAddress)
	return linuxns.RunTests(linuxns.Config{
		Addresses: []netip.Addr{api, netip.MustParseAddr(testenv.Address(1))},
		Names:     map[string]netip.Addr{apiName: api},
	}, func() int { return e2e.Main(m) })
}

// buildPrograms builds hack/image and hack/release outside of the tests' network, because modules cannot be fetched
// inside.
func buildPrograms() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "wmco-test-image-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	build := exec.Command("go", "build", "-o", dir, "./hack/image", "./hack/release")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		remove()
		return nil, fmt.Errorf("build hack/image and hack/release: %w: %s", err, output)
	}
	return remove, errors.Join(os.Setenv(imageProgram, filepath.Join(dir, "image")),
		os.Setenv(releaseProgram, filepath.Join(dir, "release")))
}

// bootLab boots a control plane with one unlisted host.
func bootLab(t *testing.T, payloadDir, version string) *testenv.Environment {
	t.Helper()
	return e2e.Boot(t, testenv.Options{
		Network: testenv.RealNetwork{}, Hosts: testenv.Hosts(1), PayloadDir: payloadDir, Version: version,
		ControlPlane: cluster.Options{Listen: net.JoinHostPort(apiAddress, apiPort)},
	})
}

// operatorVersion returns the version that the operator built by `make build` reports.
func operatorVersion(t *testing.T) string {
	t.Helper()
	version, err := testenv.OperatorVersion(t.Context(), filepath.Join(root, "build/wmco"))
	if err != nil {
		t.Fatalf("%v: is it built?", err)
	}
	return version
}

// runCommand runs a program in the root of the repository, and returns its output.
func runCommand(ctx context.Context, environment []string, name string, arguments ...string) (string, error) {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir, c.Env = root, append(os.Environ(), environment...)
	output, err := c.CombinedOutput()
	return string(output), err
}
