package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/windows-machine-config/wmco/hack/cliutil"
)

// unusedAddress returns an address without a listener.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	requireNoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// fullDisk accepts a number of bytes, and then has no space.
type fullDisk struct {
	io.WriteCloser
	bytesLeft int
}

// Write implements io.Writer.
func (d *fullDisk) Write(b []byte) (int, error) {
	if d.bytesLeft -= len(b); d.bytesLeft < 0 {
		return 0, syscall.ENOSPC
	}
	return d.WriteCloser.Write(b)
}

func createOnFullDisk(path string) (io.WriteCloser, error) {
	file, err := os.Create(path)
	return &fullDisk{file, 100_000}, err
}

// damagePayload changes the last byte of a stored file of the payload.
func damagePayload(t *testing.T, o *options) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(o.payload, "store", "*"))
	requireNoError(t, err)
	data, err := os.ReadFile(files[0])
	requireNoError(t, err)
	data[len(data)-1] ^= 1
	requireNoError(t, os.WriteFile(files[0], data, 0o644))
}

// layerOfBase sets a base in a directory, and returns the file of one of its layers.
func layerOfBase(t *testing.T, o *options) string {
	t.Helper()
	o.base = filepath.Join(t.TempDir(), "base")
	path, err := layout.Write(o.base, empty.Index)
	requireNoError(t, err)
	requireNoError(t, path.AppendIndex(newBaseIndex(t, amd64, arm64)))
	layers, err := someBase(t, amd64).Layers()
	requireNoError(t, err)
	digest, err := layers[0].Digest()
	requireNoError(t, err)
	return filepath.Join(o.base, "blobs", digest.Algorithm, digest.Hex)
}

// Each error names the problem and the remedy in one sentence.
func TestImage_InvalidInputRejectedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		with   parts
		change func(t *testing.T, o *options)
		want   []string
	}{
		"a payload that is not there": {change: func(_ *testing.T, o *options) { o.payload = "none/payload" },
			want: []string{"none/payload", "make payload"}},
		"a payload without a component": {with: parts{absent: true}, change: func(*testing.T, *options) {},
			want: []string{"hybrid-overlay-node", "EXTERNAL=", "ALLOW_MISSING=hybrid-overlay-node"}},
		"leave to lack what is no component": {change: func(_ *testing.T, o *options) { o.allowMissing = "hybrid" },
			want: []string{"ALLOW_MISSING names hybrid"}},
		"a payload with another digest": {change: damagePayload, want: []string{"damaged", "build the payload again"}},
		"a payload without its files": {change: func(t *testing.T, o *options) {
			requireNoError(t, os.RemoveAll(filepath.Join(o.payload, "store")))
		}, want: []string{"kubelet.exe", "wicd.exe", "not in the store"}},
		"a payload of another version": {change: func(_ *testing.T, o *options) { o.version = "13.0.0" },
			want: []string{testVersion, "13.0.0", "make payload"}},
		"a payload with another agent": {change: func(t *testing.T, o *options) { write(t, o.agent, "another") },
			want: []string{"another agent", "make payload"}},
		"an operator that is not built": {change: func(_ *testing.T, o *options) { o.operators[0].file = "none/wmco" },
			want: []string{"none/wmco", "make build"}},
		"an operator for another architecture": {change: func(_ *testing.T, o *options) {
			o.operators[0].file = o.operators[1].file
		}, want: []string{"linux/amd64", "EM_AARCH64"}},
		"an operator that needs libraries": {change: func(t *testing.T, o *options) {
			shell, err := exec.LookPath("bash") // any program with dependencies on libraries
			requireNoError(t, err)
			o.operators = operatorFlag{{platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, file: shell}}
		}, want: []string{"needs libraries", "CGO_ENABLED=0"}},
		"a program that is not the operator": {change: func(t *testing.T, o *options) {
			program, err := os.ReadFile(o.operators[0].file)
			requireNoError(t, err)
			write(t, o.operators[0].file, strings.ReplaceAll(string(program), "/cmd/wmco", "/cmd/tool"))
		}, want: []string{"cmd/wmco"}},
		"a base that is no image": {change: func(t *testing.T, o *options) { o.base = t.TempDir() },
			want: []string{"BASE=", "not a folder with an OCI layout"}},
		"a base with an invalid name": {change: func(_ *testing.T, o *options) { o.base = "No Such Folder" },
			want: []string{"BASE=No Such Folder", "neither a folder nor the name of an image"}},
		"a base whose folder is missing": {change: func(t *testing.T, o *options) { o.base = filepath.Join(t.TempDir(), "base") },
			want: []string{"BASE=", "there is no such folder"}},
		"a base with nothing in it": {change: func(t *testing.T, o *options) {
			o.base = filepath.Join(t.TempDir(), "base")
			_, err := layout.Write(o.base, empty.Index)
			requireNoError(t, err)
		}, want: []string{"BASE=", "no image"}},
		"a base without one of the platforms": {change: func(t *testing.T, o *options) {
			o.base = filepath.Join(t.TempDir(), "base")
			path, err := layout.Write(o.base, empty.Index)
			requireNoError(t, err)
			requireNoError(t, path.AppendIndex(newBaseIndex(t, amd64)))
		}, want: []string{"no image for linux/arm64", "it has linux/amd64"}},
		"a base without one of its layers": {change: func(t *testing.T, o *options) {
			requireNoError(t, os.Remove(layerOfBase(t, o)))
		}, want: []string{"BASE=", "layer sha256:", "no such file"}},
		"a base with a damaged layer": {change: func(t *testing.T, o *options) { write(t, layerOfBase(t, o), "damaged") },
			want: []string{"BASE=", "is damaged", "copy the image again"}},
		"a base in a registry that does not answer": {change: func(t *testing.T, o *options) {
			o.base = unusedAddress(t) + "/base:9"
		}, want: []string{"BASE=", "connection refused"}},
		"an invalid name to push to": {change: func(_ *testing.T, o *options) {
			o.image = "registry.example.com/Big Name"
		}, want: []string{"IMAGE=registry.example.com/Big Name"}},
		"an invalid time": {change: func(_ *testing.T, o *options) { o.epoch = "today" },
			want: []string{"SOURCE_DATE_EPOCH=today"}},
		"an operator over its budget": {change: func(_ *testing.T, o *options) { o.budgets = &budgets{operator: 1, image: 1 << 40} },
			want: []string{"linux/amd64", "linux/arm64", "its budget is 0.0 MB", "go tool nm"}},
		"an image over its budget": {change: func(_ *testing.T, o *options) { o.budgets = &budgets{operator: 1 << 40, image: 1} },
			want: []string{"linux/amd64", "its budget is 0.0 MB", "they are: the operator", "component kubelet"}},
		"a disk that is full": {change: func(_ *testing.T, o *options) { o.create = createOnFullDisk },
			want: []string{"no space left on device", "layer"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := writeInputs(t, test.with)
			test.change(t, &o)
			err := run(t.Context(), o, io.Discard)
			if err == nil {
				t.Fatal("it is accepted")
			}
			message := cliutil.OneLine(err)
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					t.Errorf("it says %q, without %q", message, want)
				}
			}
			if strings.Contains(message, "\n") || strings.Contains(message, ". ") {
				t.Errorf("it says more than a sentence: %q", message)
			}
			if left, err := os.ReadDir(filepath.Dir(o.output)); err == nil && len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}

func TestImage_FailureKeepsPreviousImage(t *testing.T) {
	o := writeInputs(t, parts{})
	before := buildImage(t, o)
	o.create, o.epoch = createOnFullDisk, "1700000000"
	if err := run(t.Context(), o, io.Discard); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got error %v", err)
	}
	if after := read(t, o.output); after.digest != before.digest {
		t.Errorf("before it was %s, now it is %s", before.digest, after.digest)
	}
	left, err := os.ReadDir(filepath.Dir(o.output))
	requireNoError(t, err)
	if len(left) != 2 {
		t.Errorf("there are %v", left)
	}
}

func TestImage_ForeignDirectoryNotReplaced(t *testing.T) {
	o := writeInputs(t, parts{})
	write(t, filepath.Join(o.output, "notes"), "mine")
	if err := run(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "not an OCI layout") {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.output, "notes")); err != nil {
		t.Error(err)
	}
}

func TestImage_AllowedMissingComponentAccepted(t *testing.T) {
	o := writeInputs(t, parts{absent: true})
	o.allowMissing = "hybrid-overlay-node"
	buildImage(t, o)
}

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"a platform that nobody has": {"linux/mips=wmco", "the platforms are linux/amd64 and linux/arm64"},
		"no platform":                {"wmco", "platform=file"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := parseFlags([]string{"-operator", test.value}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
	if _, err := parseFlags([]string{"-operator", "linux/amd64=a", "-operator", "linux/amd64=b"}); err == nil {
		t.Error("a platform may be given twice")
	}
}
