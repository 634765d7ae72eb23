package image

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	labpayload "github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// release is a release of the operator with the versions that its nodes report.
type release struct {
	written
	version, kubelet, exporter string
}

// newRelease writes the image of a release, with an operator of this version and a distinct agent, kubelet and
// exporter.
func newRelease(t *testing.T, version, kubelet, exporter string) release {
	t.Helper()
	dir := t.TempDir()
	if output, err := runCommand(t.Context(), []string{"CGO_ENABLED=0"}, "go", "build", "-o", dir, "-ldflags",
		"-s -w -X main.version="+version, "./cmd/wmco"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return release{version: version, kubelet: kubelet, exporter: exporter, written: writeImage(t, contents{version: version,
		operator: filepath.Join(dir, "wmco"), payload: labpayload.Options{SizePercent: 20,
			Versions: map[string]string{"kubelet": kubelet, "windows_exporter": exporter}}})}
}

// The test updates the image like the Deployment controller: the container of one image ends before the next
// starts.
func TestImageUpgrade_NodesFollowReleaseForwardAndBack(t *testing.T) {
	earlier := newRelease(t, "12.0.0", "v1.36.3", "v0.31.8")
	later := newRelease(t, "12.1.0", "v1.36.4", "v0.31.9")
	r := bootLab(t, earlier.payload, earlier.version)
	output, err := runMakeTarget(t.Context(), r, "deploy", "IMAGE=registry.example.com/wmco:v12.0.0")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.ListHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	var node corev1.Node
	t.Run("a host joins with the earlier release", func(t *testing.T) { node = runRelease(t, r, earlier) })
	t.Run("its node follows to the later one", func(t *testing.T) { checkSameNode(t, node, runRelease(t, r, later)) })
	t.Run("and back", func(t *testing.T) { checkSameNode(t, node, runRelease(t, r, earlier)) })
}

// runRelease runs the image of a release until the only host is a node of that release.
func runRelease(t *testing.T, r *testenv.Environment, of release) (node corev1.Node) {
	t.Helper()
	pod := operatorDeployment(t, r).Spec.Template.Spec
	var log bytes.Buffer
	process := layers{unpackImage(t, of.image)}.start(t, containerOf(t, r, of.image, pod), &log)
	ctx, cancel := context.WithTimeout(t.Context(), e2e.WaitTimeout)
	defer cancel()
	h := r.Hosts()[0]
	failure := r.WaitForInstance(ctx, h, "to be Ready with "+of.version, func(i *v1alpha1.WindowsInstance) bool {
		return testenv.IsReady(i) && i.Status.Version == of.version
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := process.Wait(); err != nil || failure != nil {
		t.Fatalf("the host: %v, the operator's end: %v; it said:\n%s", failure, err, log.String())
	}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: h.Options.Name}, &node); err != nil {
		t.Fatal(err)
	}
	if got := node.Status.NodeInfo.KubeletVersion; got != of.kubelet {
		t.Errorf("its kubelet is %s, and the release has %s", got, of.kubelet)
	}
	if node.Spec.Unschedulable || node.Annotations["windowsmachineconfig.openshift.io/version"] != of.version {
		t.Errorf("it is unschedulable: %t, annotations %v", node.Spec.Unschedulable, node.Annotations)
	}
	if got := runningVersion(t, h, "windows_exporter.exe"); got != of.exporter {
		t.Errorf("its exporter is %s, and the release has %s", got, of.exporter)
	}
	return node
}

// checkSameNode checks that no Node was deleted and recreated.
func checkSameNode(t *testing.T, before, after corev1.Node) {
	t.Helper()
	if before.UID != after.UID {
		t.Errorf("it was made anew: %s is now %s", before.UID, after.UID)
	}
}

// runningVersion returns the version of the program that a host runs.
func runningVersion(t *testing.T, h *testenv.Host, file string) string {
	t.Helper()
	for _, p := range h.Machine().RunningProcesses() {
		if !strings.EqualFold(p.Name, file) {
			continue
		}
		content, err := h.Machine().Drive().ReadFile(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		e, err := labpayload.ReadExecutable(content)
		if err != nil {
			t.Fatal(err)
		}
		return e.Version
	}
	return fmt.Sprintf("of no process %s", file)
}
