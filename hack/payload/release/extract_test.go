package release

import (
	"path"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/hack/payload/release/releasetest"
)

// The result must be the file that a container would have, independent of the layer structure.
func TestExtractFile_TopmostLayerWins(t *testing.T) {
	old, current := releasetest.File(program, "old"), releasetest.File(program, content)
	for name, layers := range map[string][][]releasetest.Entry{
		"the only one":                                      {{current}},
		"an upper one before a lower one":                   {{old}, {current}},
		"one that a layer below deletes":                    {{old}, {releasetest.File("root/windows/.wh.hybrid-overlay-node.exe", "")}, {current}},
		"one of the layer that deletes the folder":          {{old}, {current, releasetest.File("root/windows/.wh..wh..opq", "")}},
		"one beside a deleted one":                          {{current}, {releasetest.File("root/windows/.wh.other.exe", ""), releasetest.File("root/.wh.windows-old", "")}},
		"the last of a layer that has it twice":             {{releasetest.File(program, content+", and more"), current}},
		"one with a name that is written in another way":    {{releasetest.File("./"+strings.Replace(program, "/", "//", 1), content)}},
		"behind a symbolic link":                            {{releasetest.File("opt/a.exe", content), releasetest.Symlink(program, "../../opt/a.exe")}},
		"behind an absolute symbolic link":                  {{releasetest.File("opt/a.exe", content)}, {releasetest.Symlink(program, "/opt/a.exe")}},
		"behind a link of the folder":                       {{releasetest.File("opt/hybrid-overlay-node.exe", content)}, {releasetest.Symlink("root/windows", "../opt")}},
		"behind a hard link":                                {{releasetest.File("opt/a.exe", content), releasetest.HardLink(program, "opt/a.exe")}},
		"behind a hard link, whose file is replaced above":  {{releasetest.File("opt/a.exe", content), releasetest.HardLink(program, "opt/a.exe")}, {releasetest.File("opt/a.exe", "new")}},
		"in a folder that covers a link of the layer below": {{releasetest.Symlink("root/windows", "../opt")}, {releasetest.Directory("root/windows")}, {current}},
		"a link that leads out of the image stays in it":    {{releasetest.File("a.exe", content), releasetest.Symlink(program, "../../../../a.exe")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, allowEveryRequest)
			got, _, err := extractComponentFile(t, publishRelease(t, s, releasetest.Image(t, "amd64", "", layers...)), "")
			if err != nil || got != content {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
}

func TestExtractFile_LowerLayersNotPulled(t *testing.T) {
	s := newServer(t, allowEveryRequest)
	ovn := newComponentImage(t)
	release := publishRelease(t, s, ovn)
	_, _, err := extractComponentFile(t, release, "")
	requireNoError(t, err)
	layers, err := ovn.Layers()
	requireNoError(t, err)
	for i, want := range []bool{false, true, true} {
		if got := s.hasRequest("GET /v2/openshift-release-dev/ocp-v4.0-art-dev/blobs/" + digestOf(t, layers[i])); got != want {
			t.Errorf("layer %d was pulled: %v", i, got)
		}
	}
}

func TestExtractFile_ImageWithoutFileRejectedInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		layers [][]releasetest.Entry
		want   string
	}{
		"which never had it":            {[][]releasetest.Entry{{releasetest.File("usr/bin/oc", "oc")}}, "it has no file /" + program},
		"which deletes it":              {[][]releasetest.Entry{{releasetest.File(program, "old")}, {releasetest.File("root/windows/.wh.hybrid-overlay-node.exe", "")}}, "deletes it"},
		"which deletes its folder":      {[][]releasetest.Entry{{releasetest.File(program, "old")}, {releasetest.File("root/.wh.windows", "")}}, "deletes it"},
		"which empties its folder":      {[][]releasetest.Entry{{releasetest.File(program, "old")}, {releasetest.File("root/windows/.wh..wh..opq", "")}}, "deletes it"},
		"which has a file as folder":    {[][]releasetest.Entry{{releasetest.File(program, "old")}, {releasetest.File("root/windows", "")}}, "deletes it"},
		"in which it is a folder":       {[][]releasetest.Entry{{releasetest.Directory(program)}}, "is a folder"},
		"in which it is a broken link":  {[][]releasetest.Entry{{releasetest.Symlink(program, "gone.exe")}}, "it has no file /" + path.Join(path.Dir(program), "gone.exe")},
		"in which it is its own link":   {[][]releasetest.Entry{{releasetest.Symlink(program, "hybrid-overlay-node.exe")}}, "leads to itself"},
		"in which two links are a loop": {[][]releasetest.Entry{{releasetest.Symlink(program, "b.exe"), releasetest.Symlink("root/windows/b.exe", "hybrid-overlay-node.exe")}}, "leads to itself"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, allowEveryRequest)
			_, _, err := extractComponentFile(t, publishRelease(t, s, releasetest.Image(t, "amd64", "", test.layers...)), "")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %v", err)
			}
		})
	}
}
