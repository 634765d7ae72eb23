package image

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// The image starts with exactly the arguments, variables, volumes and permissions of the Deployment on the cluster,
// and runs until a host is a node. R-017
func TestStoryTheImageRunsAsOnACluster(t *testing.T) {
	version := operatorVersion(t)
	written := writeImage(t, contents{version: version, agent: filepath.Join(root, "build/wicd.exe")})
	r := bootLab(t, written.payload, version)
	output, err := runMakeTarget(t.Context(), r, "deploy", "IMAGE=registry.example.com/wmco:dev")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	pod := operatorDeployment(t, r).Spec.Template.Spec
	t.Run("the Deployment is of the image that was named", func(t *testing.T) {
		if got := pod.Containers[0].Image; got != "registry.example.com/wmco:dev" {
			t.Errorf("it is %s", got)
		}
	})
	runUntilNode(t, r, written, layers{unpackImage(t, written.image)}, pod)
	t.Run("and then all of it goes, if that is forced", func(t *testing.T) { undeployOperator(t, r) })
	t.Run("the manifests install it without make, too", func(t *testing.T) {
		self, environment, err := asKubectl(r)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := runCommand(t.Context(), environment, self, "apply", "-k", "deploy/"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := operatorDeployment(t, r).Spec.Template.Spec.Containers[0].Args; !slices.Equal(got, pod.Containers[0].Args) {
			t.Errorf("the operator gets %q", got)
		}
	})
}

// runUntilNode runs the operator of the Deployment's pod until the only host is a node.
func runUntilNode(t *testing.T, r *testenv.Environment, w written, containers engine, pod corev1.PodSpec) {
	t.Helper()
	t.Run("a flag that the operator does not know ends it", func(t *testing.T) {
		wrong := pod.DeepCopy()
		wrong.Containers[0].Args[0] = strings.Replace(wrong.Containers[0].Args[0], "--payload-dir", "--payload-dri", 1)
		var log bytes.Buffer
		process := containers.start(t, containerOf(t, r, w.image, *wrong), &log)
		if err := process.Wait(); err == nil || !strings.Contains(log.String(), "unknown flag: --payload-dri") {
			t.Errorf("it ends with %v, and says %s", err, log.String())
		}
	})
	var log bytes.Buffer
	container := containerOf(t, r, w.image, pod)
	start := time.Now()
	process := containers.start(t, container, &log)
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	waitForProbe(t, ended, probeURL(t, pod.Containers[0], pod.Containers[0].ReadinessProbe), &log)
	t.Logf("ready after %s", time.Since(start))
	t.Run("it has no rights on its machine", func(t *testing.T) { checkNoPrivileges(t, process.pid()) })
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.ListHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), e2e.WaitTimeout)
	defer cancel()
	failure := r.WaitReady(ctx)
	t.Run("oc adm must-gather gets what a support case needs", func(t *testing.T) { checkGather(t, r, containers, container) })
	t.Run("the operator is not taken away while it has a host", func(t *testing.T) {
		output, err := runMakeTarget(t.Context(), r, "undeploy")
		if err == nil || !strings.Contains(output, "docs/uninstall.md") {
			t.Errorf("error %v: %s", err, output)
		}
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil || failure != nil {
		t.Fatalf("the host: %v, the operator's end: %v; it said:\n%s", failure, err, log.String())
	}
}

// undeployOperator removes the operator, and checks that nothing of it is left.
func undeployOperator(t *testing.T, r *testenv.Environment) {
	output, err := runMakeTarget(t.Context(), r, "undeploy", "FORCE=1")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	objects, err := testenv.Manifests(r.Namespace())
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if !apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "no matches for kind") {
			t.Errorf("%s %s is left: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// waitForProbe waits until a probe succeeds, and ends the test if the process ends earlier.
func waitForProbe(t *testing.T, ended chan error, address string, log *bytes.Buffer) {
	t.Helper()
	var end error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, e2e.WaitTimeout, true,
		func(ctx context.Context) (bool, error) {
			select {
			case end = <-ended:
				return false, context.Canceled
			default:
				return isHealthy(ctx, address), nil
			}
		})
	if err != nil {
		t.Fatalf("%s does not answer: %v, the end %v; it said:\n%s", address, err, end, log.String())
	}
}

func isHealthy(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// checkNoPrivileges checks that a process has no capabilities and cannot acquire any.
func checkNoPrivileges(t *testing.T, pid int) {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("its status has no %q:\n%s", want, status)
		}
	}
}

// This is the command of `make run`.
func TestOperator_RunsOutsideCluster(t *testing.T) {
	version := operatorVersion(t)
	payloadDir := filepath.Join(t.TempDir(), "payload")
	agent := filepath.Join(root, "build/wicd.exe")
	if _, err := payload.Generate(payloadDir, agent, version, payload.Options{}); err != nil {
		t.Fatal(err)
	}
	r := bootLab(t, payloadDir, version)
	var log bytes.Buffer
	_, environment, err := asKubectl(r)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), "hack/deploy", "run", "build/wmco", "--payload-dir="+payloadDir,
		"--leader-elect=false")
	process.Dir, process.Stdout, process.Stderr = root, &log, &log
	process.Env = append(os.Environ(), environment...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	waitForProbe(t, ended, "http://127.0.0.1:8081/readyz", &log)
	t.Run("and none runs on the cluster", func(t *testing.T) {
		if replicas := operatorDeployment(t, r).Spec.Replicas; replicas == nil || *replicas != 0 {
			t.Errorf("the Deployment has %v replicas", replicas)
		}
	})
	if err := process.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v; it said:\n%s", err, log.String())
	}
	t.Run("beside one on the cluster it is refused", func(t *testing.T) {
		d := operatorDeployment(t, r)
		one := int32(1)
		d.Spec.Replicas = &one
		if err := r.Client.Update(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
		output, err := runCommand(t.Context(), environment, "hack/deploy", "run", "false")
		if err == nil || !strings.Contains(output, "--replicas=0") {
			t.Errorf("error %v: %s", err, output)
		}
	})
}
