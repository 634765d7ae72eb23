package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/policy/support"
)

func TestRender(t *testing.T) {
	got := render(
		[]support.Platform{
			{Name: "Cloud", Title: "The Cloud", Windows: []string{"Windows B"}, Machines: true, MachineNameLimit: 15,
				CustomVXLANPort: true},
			{Name: "None", Title: "no platform", Windows: []string{"Windows A", "Windows B"}},
			{Name: "Other", Title: "Another", Machines: true},
		},
		[]support.WindowsRelease{{Name: "Windows A", Version: "10.0.1"}, {Name: "Windows B", Version: "10.0.2",
			LeastRevision: 7, CustomVXLANPort: true}},
		[]support.ReleaseLine{{Operator: 12, Cluster: "5.0", Kubernetes: "1.36", LeastCluster: "5.0.3",
			LeastKubernetes: "1.36.2"}},
	)
	for _, want := range []string{
		"| 12.x | 5.0.3 and later of 5.0 | 1.36 |\n",
		"below OpenShift 4.6.8.",
		"| platform | `Infrastructure` says | Windows A | Windows B |\n|---|---|---|---|\n",
		"| The Cloud | `Cloud` | no | 10.0.2.7 or later |\n",
		"| no platform | `None` | 10.0.1, any update | 10.0.2.7 or later |\n",
		"| The Cloud | **required** | yes | yes | 15 characters, so 9 for a MachineSet |\n",
		"| no platform | not needed | yes | no | - |\n",
		"| Another | not needed | yes | yes | any |\n",
		"| Windows A | yes | no |\n| Windows B | yes | yes |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestRewrite(t *testing.T) {
	got, err := rewrite([]byte("above\n"+begin+"\nold\n"+end+"\nbelow\n"), "new\n")
	if want := "above\n" + begin + "\n\nnew\n\n" + end + "\nbelow\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	for _, broken := range []string{"", begin, end + begin, begin + end + begin} {
		if _, err := rewrite([]byte(broken), "new\n"); err == nil {
			t.Errorf("%q was rewritten", broken)
		}
	}
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(document))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(begin+"\n"+end+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true, io.Discard); !errors.Is(err, errStale) {
		t.Errorf("the check of a stale document gave %v", err)
	}
	if err := run(root, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true, io.Discard); err != nil {
		t.Errorf("the check of a fresh document gave %v", err)
	}
}

// The document of this repository says what the policy decides.
func TestTheDocumentIsFresh(t *testing.T) {
	if err := run("../..", true, io.Discard); err != nil {
		t.Error(err)
	}
}
