package image

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// checkSkopeo runs the two commands of docs/install.md on the layout. Without skopeo, it logs that and returns.
func checkSkopeo(t *testing.T, w written) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Logf("skopeo was not tried: %v", err)
		return
	}
	output, err := runCommand(t.Context(), nil, "skopeo", "inspect", w.imageName())
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var seen struct{ Labels map[string]string }
	if err := json.Unmarshal([]byte(output), &seen); err != nil || seen.Labels["version"] != w.tag {
		t.Errorf("error %v; it sees %+v", err, seen)
	}
	target := filepath.Join(t.TempDir(), "copy")
	if out, err := runCommand(t.Context(), nil, "skopeo", "copy", "--all", "--preserve-digests", w.imageName(),
		"oci:"+target+":"+w.tag); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if before, after := firstDigest(t, w.directory), firstDigest(t, target); before != after {
		t.Errorf("the copy of %s is %s", before, after)
	}
}

// firstDigest returns the digest of the first image of a layout, which covers all platforms.
func firstDigest(t *testing.T, dir string) v1.Hash {
	t.Helper()
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Manifests[0].Digest
}
