package image

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	product "github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/lab/payload"
)

// smallDisk returns a directory on a separate disk with a capacity of one mebibyte.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func loadPayload(t *testing.T, dir string) *product.Payload {
	t.Helper()
	p, err := product.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The image's program runs in the isolated network of the tests, which has no DNS.
func TestImage_FailedWriteLeavesNothing(t *testing.T) {
	payloadDir := filepath.Join(t.TempDir(), "payload")
	p, err := payload.Generate(payloadDir, "", "12.0.0", payload.Options{SizePercent: 40})
	if err != nil {
		t.Fatal(err)
	}
	agent := agentIn(t, p)
	for name, test := range map[string]struct {
		dir  string
		more []string
		want []string
	}{
		"because the disk is full": {smallDisk(t), nil, []string{"no space left on device", "layer"}},
		"because its base is in a registry, and there is no network": {t.TempDir(), []string{"-base", "registry.example.com/base:9"},
			[]string{"BASE=registry.example.com/base:9"}},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := append([]string{"-operator", "linux/" + runtime.GOARCH + "=build/wmco", "-payload", payloadDir, "-agent", agent,
				"-version", "12.0.0", "-output", filepath.Join(test.dir, "image")}, test.more...)
			output, err := runCommand(t.Context(), nil, os.Getenv(imageProgram), arguments...)
			if err == nil || strings.Count(output, "\n") != 1 {
				t.Errorf("error %v; it says:\n%s", err, output)
			}
			for _, want := range test.want {
				if !strings.Contains(output, want) {
					t.Errorf("it says %s, without %q", output, want)
				}
			}
			if left, err := os.ReadDir(test.dir); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, error %v", left, err)
			}
		})
	}
}

func TestImage_FailedPushKeepsImage(t *testing.T) {
	w := writeImage(t, contents{version: "12.0.0", payload: payload.Options{SizePercent: 5}})
	output, err := runCommand(t.Context(), nil, os.Getenv(imageProgram), "-operator", "linux/"+runtime.GOARCH+"=build/wmco",
		"-payload", w.payload, "-agent", agentIn(t, loadPayload(t, w.payload)), "-version", "12.0.0", "-output", w.directory,
		"-image", "registry.example.com/wmco:dev")
	if err == nil || !strings.Contains(output, "push registry.example.com/wmco:dev") || !strings.Contains(output, "stays in "+w.directory) {
		t.Errorf("error %v; it says:\n%s", err, output)
	}
	firstDigest(t, w.directory)
}

func TestRelease_FullDiskLeavesNothing(t *testing.T) {
	w := writeImage(t, contents{version: "12.0.0", payload: payload.Options{SizePercent: 5}})
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	if err := os.WriteFile(changelog, []byte("## 12.0.0\n\n- All.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := smallDisk(t)
	output, err := runCommand(t.Context(), nil, os.Getenv(releaseProgram), "-version", "12.0.0", "-changelog", changelog, "-image", w.directory,
		"-payload", w.payload, "-bundle", "deploy/olm", "-output", disk, "-name", "registry.example.com/wmco:v12.0.0", "-commit", "0")
	if err == nil || !strings.Contains(output, "no space left on device") || strings.Count(output, "\n") != 1 {
		t.Errorf("error %v; it says:\n%s", err, output)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, error %v", left, err)
	}
}

func TestPayload_FullDiskLeavesNoManifest(t *testing.T) {
	dir := filepath.Join(smallDisk(t), "payload")
	_, err := payload.Generate(dir, "", "12.0.0", payload.Options{})
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
		t.Error("it has a manifest")
	}
}
