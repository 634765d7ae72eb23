package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// As root on Debian, `make test-all` has already installed podman and skopeo.
func TestContainerTools_AcceptImage(t *testing.T) {
	version := operatorVersion(t)
	w := writeImage(t, contents{version: version})
	t.Run("skopeo inspects and copies it", func(t *testing.T) { checkSkopeo(t, w) })
	r := bootLab(t, w.payload, version)
	output, err := runMakeTarget(t.Context(), r, "deploy", "IMAGE=registry.example.com/wmco:dev")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	runUntilNode(t, r, w, engineOf(t, w), operatorDeployment(t, r).Spec.Template.Spec)
}

// engineOf returns podman if this machine can run the image with it, and otherwise the image's layers. It logs the
// choice.
func engineOf(t *testing.T, w written) engine {
	t.Helper()
	p, err := newPodman(t, w.layoutOf)
	if err != nil {
		t.Logf("the image runs from its layers, and not by podman: %v", err)
		return layers{unpackImage(t, w.image)}
	}
	t.Log("podman runs the image")
	return p
}

// podman runs the image from podman's storage.
type podman struct {
	global []string
	image  string
}

// newPodman copies the image into a new storage and starts it once, because only a trial shows whether podman works
// on this machine.
func newPodman(t *testing.T, from layoutOf) (podman, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		return podman{}, fmt.Errorf("user %d is not root", os.Geteuid())
	}
	for _, program := range []string{"podman", "runc"} {
		if _, err := exec.LookPath(program); err != nil {
			return podman{}, err
		}
	}
	dir, err := os.MkdirTemp("", "podman-") //nolint:usetesting // podman takes no more than 50 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := podman{global: []string{"--root=" + filepath.Join(dir, "storage"), "--runroot=" + filepath.Join(dir, "run"),
		"--tmpdir=" + filepath.Join(dir, "tmp"), "--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=file",
		"--runtime=runc"}}
	lower := layoutOf{directory: filepath.Join(dir, "image"), tag: from.tag} // podman accepts no capital letters in names
	if err := os.CopyFS(lower.directory, os.DirFS(from.directory)); err != nil {
		t.Fatal(err)
	}
	pulled, err := p.runPodman(t.Context(), "pull", "--quiet", lower.imageName())
	if err != nil {
		return podman{}, err
	}
	p.image = strings.TrimSpace(pulled)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := p.runPodman(ctx, "rm", "--force", "--all", "--time=0"); err != nil {
			t.Error(err)
		}
	})
	_, err = p.runPodman(t.Context(), append(append([]string{"run", "--rm"}, usual...), p.image, "version")...)
	return p, err
}

// usual contains the arguments of every container. The root user of a machine may lack the permission for podman's
// default limits.
var usual = []string{"--network=host", "--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"}

// runPodman runs podman, and returns its output.
func (p podman) runPodman(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "podman", append(append([]string{}, p.global...), arguments...)...)
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("podman %s: %w: %s", arguments[0], err, strings.TrimSpace(messages.String()))
	}
	return string(output), nil
}

func (p podman) start(t *testing.T, c container, log *bytes.Buffer) running {
	t.Helper()
	name := "wmco-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	arguments := append([]string{"run", "--rm", "--name=" + name, "--cap-drop=ALL", "--security-opt=no-new-privileges",
		"--read-only=" + strconv.FormatBool(c.ReadOnly), "--read-only-tmpfs=false",
		"--entrypoint=" + c.Entry[0], "--user=" + strconv.Itoa(c.User), "--workdir=" + c.Dir}, usual...)
	for _, variable := range c.Env {
		arguments = append(arguments, "--env="+variable)
	}
	for _, m := range c.Mounts {
		volume := m.Source + ":" + m.Target
		if m.ReadOnly {
			volume += ":ro"
		}
		arguments = append(arguments, "--volume="+volume)
	}
	arguments = append(append(arguments, p.image), append(c.Entry[1:], c.Args...)...)
	process := exec.CommandContext(t.Context(), "podman", append(append([]string{}, p.global...), arguments...)...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatalf("start podman: %v", err)
	}
	return running{Cmd: process, pid: func() int {
		output, err := p.runPodman(t.Context(), "inspect", "--format={{.State.Pid}}", name)
		if err != nil {
			t.Error(err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(output)) // 0 has no status
		return pid
	}}
}
