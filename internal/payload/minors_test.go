package payload

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	kubelet35 = randomContent(35, 120_000)
	proxy35   = append(randomContent(36, 80_000), kubelet35[:60_000]...)
	kubelet36 = randomContent(37, 120_000)
	proxy36   = append(randomContent(38, 80_000), kubelet36[:60_000]...)
)

// minorsBuild returns a build with kubelet and kube-proxy for two minor versions of Kubernetes.
func minorsBuild() Build {
	build := Build{Version: "v12.0.0", Components: []Source{
		newSource("wicd", true, map[string][]byte{"wicd.exe": agent}, "wicd.exe"),
		newSource("cni", true, map[string][]byte{"a.exe": shared, "b.exe": kubelet}, "a.exe", "b.exe"),
	}}
	for minor, files := range map[string]map[string][]byte{
		"1.35": {"kubelet.exe": kubelet35, "kube-proxy.exe": proxy35}, "1.36": {"kubelet.exe": kubelet36, "kube-proxy.exe": proxy36}} {
		for _, name := range []string{"kubelet", "kube-proxy"} {
			source := newSource(name, false, files, name+".exe")
			source.Minors = []string{minor}
			build.Components = append(build.Components, source)
		}
	}
	slices.SortStableFunc(build.Components[2:], func(a, b Source) int { return strings.Compare(a.Minors[0], b.Minors[0]) })
	return build
}

func writeMinors(t *testing.T) *Payload {
	t.Helper()
	p, err := Write(t.TempDir(), minorsBuild())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMinors_ComponentsOfTarget(t *testing.T) {
	p := writeMinors(t)
	for minor, want := range map[string][]byte{"1.35": kubelet35, "1.36": kubelet36} {
		var names []string
		for _, c := range p.Components(Target{Platform: "None", Kubernetes: minor}) {
			names = append(names, c.Name)
			if c.Name == "kubelet" && c.Files[0].SHA256 != sumOf(want) {
				t.Errorf("hosts with Kubernetes %s get %+v", minor, c)
			}
		}
		if !slices.Equal(names, []string{"wicd", "cni", "kubelet", "kube-proxy"}) {
			t.Errorf("hosts with Kubernetes %s get %v", minor, names)
		}
	}
	if names := p.Components(Target{Kubernetes: "1.37"}); len(names) != 2 {
		t.Errorf("hosts with another version get %v", names)
	}
}

// An image contains each kubelet once.
func TestMinors_StoredInPack(t *testing.T) {
	p := writeMinors(t)
	if packs := p.Manifest().Packs; len(packs) != 3 || len(packs[0].Files) != 2 || len(packs[1].Files) != 2 {
		t.Fatalf("the packs are %+v", packs)
	}
	for _, content := range [][]byte{kubelet35, proxy35, kubelet36, proxy36} {
		for _, suffix := range []string{"", zstdSuffix} {
			if _, err := os.Stat(p.storePath(sumOf(content)) + suffix); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file of a pack is stored separately: %v", err)
			}
		}
		r, err := p.Open(sumOf(content))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes were read, error %v", len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Verify(); err != nil {
		t.Error(err)
	}
	parts, err := p.Parts()
	if err != nil || len(parts.Packs) != 3 || len(parts.Components["kubelet for Kubernetes 1.35"]) != 0 {
		t.Errorf("the parts are %+v, error %v", parts, err)
	}
	again, err := Write(p.Directory(), minorsBuild())
	if err != nil || again.digest != p.digest {
		t.Errorf("a second build differs: %v", err)
	}
}

func TestMinors_ArchiveCompletesPack(t *testing.T) {
	p := writeMinors(t)
	for name, c := range map[string]struct{ wanted, sent [][]byte }{
		"all for one version":   {[][]byte{shared, kubelet, kubelet35, proxy35}, [][]byte{shared, kubelet, kubelet35, proxy35}},
		"one file of a version": {[][]byte{proxy36}, [][]byte{kubelet36, proxy36}},
		"one file for all":      {[][]byte{shared}, [][]byte{shared}},
	} {
		t.Run(name, func(t *testing.T) {
			var sums []string
			for _, content := range c.wanted {
				sums = append(sums, sumOf(content))
			}
			archive := archiveOf(t, p, sums...)
			got, err := unpackAll(bytes.NewReader(archive))
			if err != nil || len(got) != len(c.sent) {
				t.Fatalf("%d files, error %v", len(got), err)
			}
			for _, content := range c.sent {
				if !bytes.Equal(got[sumOf(content)], content) {
					t.Errorf("a file of %d bytes differs", len(content))
				}
			}
			if size, err := p.ArchiveSize(sums); err != nil || size > int64(len(archive)) || size < int64(len(archive))-1000 {
				t.Errorf("the size is estimated as %d of %d bytes, error %v", size, len(archive), err)
			}
		})
	}
}

// A damaged file of one version does not affect clusters of other versions.
func TestMinors_DamageAffectsOneVersion(t *testing.T) {
	p := writeMinors(t)
	pack, _ := p.packOf(sumOf(kubelet35))
	if err := os.Truncate(p.packPath(pack), pack.Size-1); err != nil {
		t.Fatal(err)
	}
	p, err := Load(p.Directory())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Missing("kubelet", "1.35"); err == nil || !strings.Contains(err.Error(), "kubelet for Kubernetes 1.35") {
		t.Errorf("the reason is %v", err)
	}
	if p.Missing("kubelet", "1.36") != nil || p.Missing("cni", "1.35") != nil || len(p.Gaps()) != 2 {
		t.Errorf("the gaps are %v", p.Gaps())
	}
	if n := len(p.Components(Target{Kubernetes: "1.36"})); n != 4 {
		t.Errorf("hosts with Kubernetes 1.36 get %d components", n)
	}
	if n := len(p.Components(Target{Kubernetes: "1.35"})); n != 2 {
		t.Errorf("hosts with Kubernetes 1.35 get %d components", n)
	}
}

func TestMinors_PatchesWithinVersion(t *testing.T) {
	before := writeMinors(t)
	build := minorsBuild()
	changed := slices.Clone(kubelet36)
	changed[7] ^= 1
	for i, source := range build.Components {
		if source.Name == "kubelet" && source.Minors[0] == "1.36" {
			build.Components[i] = newSource("kubelet", false, map[string][]byte{"kubelet.exe": changed}, "kubelet.exe")
			build.Components[i].Minors = source.Minors
		}
	}
	build.Earlier = []*Payload{before}
	p, err := Write(t.TempDir(), build)
	if err != nil {
		t.Fatal(err)
	}
	if patches := p.Manifest().Patches; len(patches) != 1 || patches[0].From != sumOf(kubelet36) || patches[0].To != sumOf(changed) {
		t.Errorf("the patches are %+v", patches)
	}
}

func TestMinors_Validation(t *testing.T) {
	component := func(name string, minors ...string) Component {
		return Component{Name: name, Version: "v1", Source: "s", Minors: minors,
			Files: []File{{Path: name + ".exe", SHA256: sumOf([]byte(name + strings.Join(minors, ""))), Size: 3}}}
	}
	for name, c := range map[string]struct {
		components []Component
		absent     []Absent
		fault      string
	}{
		"different versions":         {[]Component{component("a", "1.35"), component("a", "1.36", "1.37")}, nil, ""},
		"one is absent":              {[]Component{component("a", "1.35")}, []Absent{{Name: "a", Minors: []string{"1.36"}, Reason: "r"}}, ""},
		"a version twice":            {[]Component{component("a", "1.35"), component("a", "1.35", "1.36")}, nil, "listed twice"},
		"for all and for one":        {[]Component{component("a"), component("a", "1.36")}, nil, "listed twice"},
		"for one and for all":        {[]Component{component("a", "1.36"), component("a")}, nil, "listed twice"},
		"absent and present":         {[]Component{component("a", "1.36")}, []Absent{{Name: "a", Minors: []string{"1.36"}, Reason: "r"}}, "listed twice"},
		"a version with a patch":     {[]Component{component("a", "1.36.3")}, nil, "not a minor version"},
		"an agent for some clusters": {[]Component{component("wicd", "1.36")}, nil, "for all hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Manifest{Schema: SchemaVersion, Version: "v1", Components: c.components, Absent: c.absent}.Validate()
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}
}

// A file of two versions is in no pack: a host would receive the pack of another version.
func TestMinors_SharedFileStoredOnce(t *testing.T) {
	build := minorsBuild()
	for _, minor := range []string{"1.35", "1.36"} {
		source := newSource("hybrid-overlay-node", false, map[string][]byte{"hybrid.exe": azure}, "hybrid.exe")
		source.Minors = []string{minor}
		build.Components = append(build.Components, source)
	}
	p, err := Write(t.TempDir(), build)
	if err != nil {
		t.Fatal(err)
	}
	if _, packed := p.packOf(sumOf(azure)); packed {
		t.Error("the file is in a pack")
	}
	got, err := unpackAll(bytes.NewReader(archiveOf(t, p, sumOf(azure))))
	if err != nil || len(got) != 1 {
		t.Errorf("%d files are sent, error %v", len(got), err)
	}
}

// A host with the former kubelet, but without the former kube-proxy, receives the complete pack and no patch.
func TestMinors_PackReplacesPatch(t *testing.T) {
	before, build := writeMinors(t), minorsBuild()
	changed := slices.Clone(kubelet36)
	changed[7] ^= 1
	for i, source := range build.Components {
		if source.Name == "kubelet" && source.Minors[0] == "1.36" {
			build.Components[i] = newSource("kubelet", false, map[string][]byte{"kubelet.exe": changed}, "kubelet.exe")
			build.Components[i].Minors = source.Minors
		}
	}
	build.Earlier = []*Payload{before}
	p, err := Write(t.TempDir(), build)
	if err != nil {
		t.Fatal(err)
	}
	patch := p.Manifest().Patches[0].SHA256
	got, err := unpackAll(bytes.NewReader(archiveOf(t, p, patch, sumOf(proxy36))))
	if err != nil || len(got) != 2 || got[sumOf(changed)] == nil {
		t.Errorf("%d files are sent, error %v", len(got), err)
	}
	if got, err = unpackAll(bytes.NewReader(archiveOf(t, p, patch))); err != nil || len(got) != 1 {
		t.Errorf("%d files are sent for a patch, error %v", len(got), err)
	}
}
