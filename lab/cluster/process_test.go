package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-machine-config/wmco/lab/cluster"
)

// parentVariable makes the test binary start a control plane in the directory that the variable contains.
const parentVariable = "LAB_CLUSTER_TEST_DIR"

// runParent starts a control plane, prints its process id and waits to be killed.
func runParent() {
	c, err := cluster.Start(context.Background(), cluster.Options{Dir: os.Getenv(parentVariable)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.PID())
	<-c.Done()
	os.Exit(1)
}

func TestProcess(t *testing.T) {
	t.Run("a killed parent leaves no process, and a directory that starts again", func(t *testing.T) {
		dir := t.TempDir()
		pid := startAndKillParent(t, dir)
		awaitCondition(t, "wait for the control plane to be gone", func(context.Context) (bool, error) {
			return !isControlPlane(pid), nil
		})

		c := start(t, cluster.Options{Dir: dir})
		if _, err := newClientset(t, c.Config).CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("Stop removed a directory that is not its own: %v", err)
		}
	})

	t.Run("a stopped one leaves nothing, and serves an inherited listener until then", func(t *testing.T) {
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		c := start(t, cluster.Options{Listener: listener})
		config, err := clientcmd.BuildConfigFromFlags("", c.ExternalKubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if want := "https://" + listener.Addr().String(); config.Host != want {
			t.Errorf("the external kubeconfig is for %s, want %s", config.Host, want)
		}
		if _, err := newClientset(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("through the inherited listener: %v", err)
		}
		pid := c.PID()
		for range 2 {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		}
		if isControlPlane(pid) {
			t.Errorf("process %d is still there", pid)
		}
		if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
			t.Errorf("the directory is still there: %v", err)
		}
	})

	t.Run("a boot that fails says why", func(t *testing.T) {
		_, err := cluster.Start(t.Context(), cluster.Options{Profile: cluster.OpenShift, Platform: "Mainframe"})
		if err == nil || !strings.Contains(err.Error(), `platform "Mainframe" is not one of None, AWS`) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a start that is canceled leaves no process", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := cluster.Start(ctx, cluster.Options{}); err == nil {
			t.Error("no error")
		}
	})

	t.Run("without a binary the error says what to run", func(t *testing.T) {
		t.Chdir(t.TempDir())
		t.Setenv("WMCO_LAB_CONTROLPLANE", "")
		_, err := cluster.Start(t.Context(), cluster.Options{})
		if err == nil || !strings.Contains(err.Error(), "make build/lab-controlplane") {
			t.Errorf("got %v", err)
		}
	})
}

func start(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// startAndKillParent returns the process id of a control plane after its parent was killed.
func startAndKillParent(t *testing.T, dir string) int {
	t.Helper()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	parent.Stderr = os.Stderr
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent started no control plane: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !isControlPlane(pid) {
		t.Fatalf("process %d is no control plane", pid)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // reports the kill
	return pid
}

func isControlPlane(pid int) bool {
	executable, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return err == nil && strings.Contains(executable, "controlplane")
}
