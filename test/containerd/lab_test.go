// Package containerd tests how the agent ends pods with the real containerd. The version of the payload is built
// for Linux, runc runs the containers, and a program of the test is the pod network.
package containerd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/windows-machine-config/wmco/lab/wine"
)

const (
	repository = "../.."
	// idleVariable makes the test's program an idle process of a container.
	idleVariable = "WMCO_TEST_IDLE"
)

// programs is the directory with containerd, its shim and runc.
var programs = filepath.Join(repository, "build/containerd-linux")

func TestMain(m *testing.M) {
	if os.Getenv(idleVariable) != "" {
		ends := make(chan os.Signal, 1)
		signal.Notify(ends, syscall.SIGTERM)
		<-ends
		os.Exit(0)
	}
	if wine.Available() == nil { // the needs are the same: root that mounts, a go command, apt
		command := exec.CommandContext(context.Background(), filepath.Join(repository, "hack/make-containerd"), programs)
		if output, err := command.CombinedOutput(); err != nil {
			fmt.Printf("make containerd: %v\n%s\n", err, output)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
