package gather

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

func TestArchive_NamedOnlyWhenComplete(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "case.tar.gz")
	fileNames := func() []string {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	interrupted, err := newArchive(name, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := interrupted.addFile("a.txt", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if names := fileNames(); len(names) != 1 || names[0] == "case.tar.gz" {
		t.Errorf("while it is written there is %v", names)
	}
	interrupted.discardOutput()
	if names := fileNames(); len(names) > 0 {
		t.Errorf("an interrupted archive leaves %v", names)
	}

	archive, err := newArchive(name, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.addFile("a.txt", []byte("alpha")), archive.addFile("b/c.txt", nil), archive.finishOutput()); err != nil {
		t.Fatal(err)
	}
	archive.discardOutput()
	if names := fileNames(); !cmp.Equal(names, []string{"case.tar.gz"}) {
		t.Errorf("there is %v", names)
	}
	want := map[string]string{"windows-gather/a.txt": "alpha", "windows-gather/b/c.txt": ""}
	if diff := cmp.Diff(want, unpackArchive(t, name)); diff != "" {
		t.Error(diff)
	}
}

func unpackArchive(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func TestCollection_WriteErrorKept(t *testing.T) {
	c := &collection{sink: directorySink{directory: filepath.Join("/dev/null", "x")}}
	c.write("a.txt", nil)
	if c.broken == nil {
		t.Error("the failure is forgotten")
	}
}

func TestArchive_MissingDirectoryIsError(t *testing.T) {
	_, err := newArchive(filepath.Join(t.TempDir(), "nosuch", "case.tar.gz"), time.Unix(0, 0))
	if err == nil || !strings.Contains(err.Error(), "create the archive") {
		t.Error(err)
	}
}

func TestRedactObject_RemovesPossibleSecrets(t *testing.T) {
	const secret = "hunter2"
	pod := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name":          "web",
			"annotations":   map[string]any{"kubectl.kubernetes.io/last-applied-configuration": secret, "note": "kept"},
			"managedFields": []any{map[string]any{"manager": secret}},
		},
		"spec": map[string]any{
			"env": "no list",
			"containers": []any{map[string]any{"name": "web", "args": []any{"--password=" + secret}, "command": []any{secret},
				"env": []any{
					map[string]any{"name": "PASSWORD", "value": secret},
					map[string]any{"name": "FROM", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s"}}},
				}}},
		},
	}}
	redactObject(pod)
	text, err := pod.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("it is still there: %s", text)
	}
	for _, kept := range []string{`"PASSWORD"`, `"secretKeyRef"`, `"kept"`, `"web"`} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%s is lost: %s", kept, text)
		}
	}
}

func TestFileName_StaysInDirectory(t *testing.T) {
	for name, want := range map[string]string{"win-1": "win-1", "../../etc": ".._.._etc", "..": "_", "": "_", `a\b:c`: "a_b_c"} {
		if got := fileName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func TestSummary_CountsSelectedHosts(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := &command{Access: cmdutil.New(streams, clock.RealClock{})}
	failed := fleet.Instance{}
	failed.Name, failed.Status.Summary = "win-1", "DiskFull"
	g := &gatherer{collection: &collection{files: 5, missing: []string{"a: no"}}}
	if err := command.printSummary(g, "case.tar.gz", fleet.Fleet{Instances: []fleet.Instance{failed, failed}}, 1); err != nil {
		t.Fatal(err)
	}
	const want = `case.tar.gz: 5 files of 1 host. Start with index.html
2 of 2 hosts are not Ready for another reason: win-1 (DiskFull), win-1 (DiskFull)
1 thing could not be read, see gaps.txt. The first: a: no
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := command.printSummary(g, "case.tar.gz", fleet.Fleet{Instances: []fleet.Instance{failed}}, 1); err != nil || !strings.Contains(out.String(), "1 of 1 host is not Ready") {
		t.Errorf("%v\n%s", err, out)
	}
}
