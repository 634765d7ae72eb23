package hostlogs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// disk contains files, and records the read ones.
type disk struct {
	files map[string]string // by path
	read  []string
	lost  error // of the connection
}

type entry struct {
	fs.FileInfo

	name      string
	directory bool
}

func (e entry) Name() string { return e.name }
func (e entry) IsDir() bool  { return e.directory }

func (d *disk) List(_ context.Context, dir string) (entries []fs.FileInfo, err error) {
	seen := map[string]bool{}
	for path := range d.files {
		below, is := strings.CutPrefix(path, dir+`\`)
		name, _, inDirectory := strings.Cut(below, `\`)
		if is && !seen[name] {
			seen[name] = true
			entries = append(entries, entry{name: name, directory: inDirectory})
		}
	}
	if len(entries) == 0 {
		return nil, fs.ErrNotExist
	}
	return entries, nil
}

func (d *disk) Read(_ context.Context, path string, offset, most int64) (remote.Excerpt, error) {
	d.read = append(d.read, path)
	if d.lost != nil {
		return remote.Excerpt{}, d.lost
	}
	content, exists := d.files[path]
	if !exists {
		return remote.Excerpt{}, fs.ErrNotExist
	}
	size := int64(len(content))
	if offset < 0 {
		offset = max(0, size-most)
	}
	return remote.Excerpt{Body: []byte(content)[min(offset, size):min(offset+most, size)], Offset: offset, Size: size}, nil
}

const logs = nodespec.LogRoot + `\`

func TestFiles_OnlyNodeServicesHaveLogs(t *testing.T) {
	d := &disk{files: map[string]string{logs + `kubelet\kubelet.log`: "one\n", logs + `kubelet\kubelet-20260101-000000.log`: "old\n",
		logs + `containerd\panic.txt`: "", logs + `database\database.log`: "secret\n", logs + `file.log`: ""}}
	f := Files{Host: d}
	if services, err := f.Services(t.Context()); err != nil || !slices.Equal(services, []string{"containerd", "kubelet"}) {
		t.Errorf("they are %v, %v", services, err)
	}
	if path, err := f.Current(t.Context(), "kubelet"); err != nil || path != logs+`kubelet\kubelet.log` {
		t.Errorf("the kubelet's is %s, %v", path, err)
	}
	for service, message := range map[string]string{
		"containerd": `no log is in folder C:\var\log\containerd`, "kube-proxy": `the host has no folder C:\var\log\kube-proxy`,
		"database": "a node has no such service", `..\..\k\wicd`: "a node has no such service", "": "a node has no such service",
	} {
		if _, err := f.Current(t.Context(), service); !errors.Is(err, logprinter.ErrNotFound) || !strings.Contains(err.Error(), message) {
			t.Errorf("of %q it says %v", service, err)
		}
	}
	ends, err := Ends(t.Context(), f)
	if err != nil || len(ends) != 1 || string(ends["kubelet"]) != "one\n" {
		t.Errorf("the ends are %q, %v", ends, err)
	}
	for _, path := range d.read {
		if path != logs+`kubelet\kubelet.log` {
			t.Errorf("it has read %s", path)
		}
	}
}

func TestFiles_LargeLogReadInChunks(t *testing.T) {
	content := strings.Repeat("0123456789abcde\n", 3*chunk/16) + "end\n"
	f := Files{Host: &disk{files: map[string]string{logs + `kubelet\kubelet.log`: content}}}
	var out bytes.Buffer
	viewer := logprinter.Viewer{Out: &out, ErrOut: &out, Tail: -1}
	if err := viewer.Show(t.Context(), f, "kubelet"); err != nil || out.String() != content {
		t.Errorf("all of it has %d bytes, want %d: %v", out.Len(), len(content), err)
	}
	for _, bytes := range []int64{10, chunk, 2*chunk + 1, 10 * chunk} {
		part, err := f.Last(t.Context(), logs+`kubelet\kubelet.log`, bytes)
		want := content[max(0, int64(len(content))-bytes):]
		if err != nil || string(part.Body) != want || part.From != int64(len(content)-len(want)) {
			t.Errorf("its last %d bytes are %d from %d on, %v", bytes, len(part.Body), part.From, err)
		}
	}
}

func TestFiles_TailLimitedToMaxTailSize(t *testing.T) {
	content := strings.Repeat(strings.Repeat("x", 1023)+"\n", maxTailSize>>10+100)
	f := Files{Host: &disk{files: map[string]string{logs + `kubelet\kubelet.log`: content}}}
	for name, c := range map[string]struct {
		tail   int
		bytes  int
		stderr string
	}{
		"more lines than are held":      {1 << 20, maxTailSize, `only the last 16 MiB of C:\var\log\kubelet\kubelet.log were searched; --tail=-1`},
		"no more lines than are held":   {10, 10 << 10, ""},
		"all lines, which are not held": {-1, len(content), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			viewer := logprinter.Viewer{Out: &out, ErrOut: &errOut, Tail: c.tail}
			if err := viewer.Show(t.Context(), f, "kubelet"); err != nil || out.Len() != c.bytes {
				t.Errorf("it has printed %d bytes, %v", out.Len(), err)
			}
			if got := errOut.String(); !strings.Contains(got, c.stderr) || (got == "") != (c.stderr == "") {
				t.Errorf("it has said %q, want %q", got, c.stderr)
			}
		})
	}
}

func TestFiles_LostConnectionEndsFollow(t *testing.T) {
	d := &disk{files: map[string]string{logs + `kubelet\kubelet.log`: "one\n"}}
	f := Files{Host: d}
	if _, err := f.From(t.Context(), logs+`kubelet\kubelet.log`, 0); err != nil {
		t.Fatal(err)
	}
	for lost, gone := range map[*remote.Error]bool{
		{Host: "10.0.0.1", Reason: remote.ReasonConnectionLost, Message: "the SSH connection was lost", Next: "the operator retries"}: true,
		{Host: "10.0.0.1", Reason: remote.ReasonTransferFailed, Message: "the file is locked"}:                                        false,
	} {
		d.lost = lost
		_, err := f.From(t.Context(), logs+`kubelet\kubelet.log`, 0)
		if errors.Is(err, logprinter.ErrGone) != gone || !strings.Contains(err.Error(), "host 10.0.0.1: "+lost.Message) {
			t.Errorf("of %v it says %v", lost, err)
		}
		if gone && (strings.Contains(err.Error(), "the operator retries") || !strings.Contains(err.Error(), "Run the command again")) {
			t.Errorf("what is next is not said: %v", err)
		}
	}
}
