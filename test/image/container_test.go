package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"
)

// containerVariable holds the description of the container in its first process.
const containerVariable = "WMCO_TEST_CONTAINER"

// container describes how to run a container.
type container struct {
	Root     string // the unpacked image, for containers run from image layers
	ReadOnly bool
	User     int
	Entry    []string
	Args     []string
	Env      []string // including the image's variables
	Dir      string
	Mounts   []mount
}

// mount is a directory of the machine in the container.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// layers runs the image without a container engine, from image layers that are unpacked into the directory.
type layers struct{ directory string }

// start starts the container in user, mount and process namespaces: as the container's user, without privileges,
// and with only the image and its mounts visible.
func (l layers) start(t *testing.T, c container, log *bytes.Buffer) running {
	t.Helper()
	c.Root = l.directory
	for _, m := range c.Mounts {
		if err := os.MkdirAll(filepath.Join(c.Root, m.Target), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	description, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), self)
	process.Env = []string{containerVariable + "=" + string(description)}
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: c.User, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: c.User, HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}, // to mount; see enterContainer
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := process.Start(); err != nil {
		t.Fatalf("start a container: %v", err)
	}
	return running{Cmd: process, pid: func() int { return process.Process.Pid }}
}

// enterContainer replaces this process by the container's process. It returns only on failure.
func enterContainer(description string) error {
	runtime.LockOSThread() // capabilities belong to threads
	var c container
	if err := json.Unmarshal([]byte(description), &c); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make all mounts private: %w", err)
	}
	if err := bindMount(c.Root, c.Root, false); err != nil {
		return err
	}
	for _, m := range c.Mounts {
		if err := bindMount(m.Source, filepath.Join(c.Root, m.Target), m.ReadOnly); err != nil {
			return err
		}
	}
	if c.ReadOnly {
		if err := makeReadOnly(c.Root); err != nil {
			return err
		}
	}
	if err := errors.Join(unix.Chroot(c.Root), unix.Chdir(c.Dir)); err != nil {
		return fmt.Errorf("enter %s: %w", c.Root, err)
	}
	// For a user other than root, this drops the last capabilities.
	if err := errors.Join(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return fmt.Errorf("give up all rights: %w", err)
	}
	args := append(slices.Clone(c.Entry), c.Args...)
	return fmt.Errorf("run %q: %w", args, syscall.Exec(args[0], args, c.Env))
}

func bindMount(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	if readOnly {
		return makeReadOnly(target)
	}
	return nil
}

// makeReadOnly keeps the other flags of a mount, which a user must not remove.
func makeReadOnly(target string) error {
	var of unix.Statfs_t
	if err := unix.Statfs(target, &of); err != nil {
		return fmt.Errorf("look at %s: %w", target, err)
	}
	kept := uintptr(of.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|kept, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// unpackImage writes the files of an image into a new directory. In the image, root owns all files; here, the user of
// the test does.
func unpackImage(t *testing.T, image v1.Image) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "root")
	stream := mutate.Extract(image)
	defer stream.Close()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err == nil {
			err = unpackFile(filepath.Join(dir, filepath.FromSlash(header.Name)), header, reader)
		}
		if err != nil {
			t.Fatalf("unpack the image: %v", err)
		}
	}
}

func unpackFile(path string, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		return os.Symlink(header.Linkname, path)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// imageUser returns the numeric user of an image. A kubelet must be able to distinguish this user from root.
func imageUser(t *testing.T, config v1.Config) int {
	t.Helper()
	name, _, _ := strings.Cut(config.User, ":")
	user, err := strconv.Atoi(name)
	if err != nil || user == 0 {
		t.Fatalf("the image's user is %q: a kubelet refuses it with runAsNonRoot", config.User)
	}
	return user
}
