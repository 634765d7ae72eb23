package wine

import (
	"bufio"
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

// makerVariable makes the test binary a program that only creates a host.
const makerVariable = "WINE_TEST_MAKER"

// playMaker creates and boots a host, prints the host's directory and the process id of its first process, and
// waits for the end of the host.
func playMaker() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	base, err := Prepare(ctx, "")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	h, err := New(ctx, Options{Base: base, Name: "orphan", Address: hostAddress(40)})
	if err == nil {
		err = h.Start(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(h.dir, h.process.command.Process.Pid)
	select {}
}

func TestKilledMaker_LeavesNothing(t *testing.T) {
	maker := exec.Command(os.Args[0])
	maker.Env = append(os.Environ(), makerVariable+"=1")
	output, err := maker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := maker.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
	alive := func() bool {
		status, err := os.ReadFile("/proc/" + pid + "/stat")
		return err == nil && !strings.Contains(string(status), ") Z ") // orphans in a PID namespace may stay zombies
	}
	if !alive() {
		t.Fatalf("there is no host, the maker says %q", line)
	}
	if err := maker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = maker.Wait()
	isGone := func(path string) func() bool {
		return func() bool {
			_, err := os.Stat(path)
			return os.IsNotExist(err)
		}
	}
	awaitCondition(t, "the host's first process ends", func() bool { return !alive() })
	awaitCondition(t, "the host's folder is removed", isGone(dir))
	awaitCondition(t, "the network interface is gone", isGone("/sys/class/net/wine-0a080028"))
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts are left: %v", err)
	}
	if processes := processesOf(t, dir); len(processes) > 0 {
		t.Errorf("processes are left: %v", processes)
	}
	if h := newHost(t, Options{Name: "heir", Address: hostAddress(40)}); h.Boots() != 1 {
		t.Errorf("the address is not free")
	}
}

// processesOf returns the command lines of the processes with a root below the directory, by process id.
func processesOf(t *testing.T, dir string) map[int]string {
	t.Helper()
	roots, err := filepath.Glob("/proc/[0-9]*/root")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, root := range roots {
		if target, err := os.Readlink(root); err == nil && strings.HasPrefix(target, dir) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(root), "cmdline"))
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(root)))
			if err != nil {
				t.Fatal(err)
			}
			found[pid] = string(line)
		}
	}
	return found
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	living, held, err := newLockedDirectory(dir, "Living")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	dead, released, err := newLockedDirectory(dir, "Dead")
	if err != nil {
		t.Fatal(err)
	}
	_ = released.Close()
	if err := sweepHosts(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(living); err != nil {
		t.Errorf("the folder of a host whose maker lives: %v", err)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the folder of a host whose maker was killed: %v", err)
	}
}
