package main

import (
	"archive/tar"
	"crypto/x509"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/payload"
)

func TestImage_ContainsOperatorRequirements(t *testing.T) {
	o := writeInputs(t, parts{})
	m := buildImage(t, o)
	if len(m.images) != 2 {
		t.Fatalf("there are images for %d platforms", len(m.images))
	}
	for platform, image := range m.images {
		entries := unpackImage(t, image)
		t.Run("the program for "+platform+" is built for it", func(t *testing.T) {
			programs, err := operators()
			requireNoError(t, err)
			if e := entries["usr/bin/wmco"]; e.content != string(programs[platform]) || e.Mode != 0o755 {
				t.Errorf("it has %d bytes and the mode %o", len(e.content), e.Mode)
			}
			config, err := image.ConfigFile()
			requireNoError(t, err)
			if config.OS+"/"+config.Architecture != platform {
				t.Errorf("the image says that it is for %s/%s", config.OS, config.Architecture)
			}
		})
		t.Run("oc adm must-gather finds its program on "+platform, func(t *testing.T) {
			if e := entries["usr/bin/gather"]; e.Typeflag != tar.TypeSymlink || e.Linkname != "wmco" {
				t.Errorf("it is %c, and leads to %q", e.Typeflag, e.Linkname)
			}
		})
		t.Run("scripts find the program at its former path on "+platform, func(t *testing.T) {
			const former = "usr/local/bin/windows-machine-config-operator"
			if e := entries[former]; e.Typeflag != tar.TypeSymlink || path.Join(path.Dir(former), e.Linkname) != "usr/bin/wmco" {
				t.Errorf("it is %c, and leads to %q", e.Typeflag, e.Linkname)
			}
		})
		t.Run("the payload on "+platform+" is whole", func(t *testing.T) {
			dir := t.TempDir()
			for name, e := range entries {
				if e.Typeflag == tar.TypeReg && strings.HasPrefix(name, "payload/") {
					write(t, filepath.Join(dir, name), e.content)
				}
			}
			p, err := payload.Load(filepath.Join(dir, "payload"))
			requireNoError(t, err)
			requireNoError(t, p.Verify())
			if gaps := p.Gaps(); len(gaps) > 0 {
				t.Errorf("it lacks %v", gaps)
			}
		})
		t.Run("any user may read it, and root owns it, on "+platform, func(t *testing.T) {
			for name, e := range entries {
				hidden := e.Mode&0o444 != 0o444 || e.Typeflag == tar.TypeDir && e.Mode&0o111 != 0o111
				writable := e.Mode&0o022 != 0 && e.Typeflag != tar.TypeSymlink
				if e.Uid != 0 || e.Gid != 0 || hidden || writable {
					t.Errorf("%s has owner %d:%d and the mode %o", name, e.Uid, e.Gid, e.Mode)
				}
			}
		})
		t.Run("certificate authorities are where Go looks for them, on "+platform, func(t *testing.T) {
			if !x509.NewCertPool().AppendCertsFromPEM([]byte(entries["etc/ssl/certs/ca-certificates.crt"].content)) {
				t.Error("there is none")
			}
		})
	}
}

// skopeo of Debian 12 would otherwise copy the index only if the digest may change.
func TestImage_HasNoArtifactType(t *testing.T) {
	m := buildImage(t, writeInputs(t, parts{}))
	index, err := m.root.ImageIndex(m.digest)
	requireNoError(t, err)
	manifest, err := index.IndexManifest()
	requireNoError(t, err)
	for _, d := range manifest.Manifests {
		if d.ArtifactType != "" {
			t.Errorf("the image for %s has the artifactType %s", d.Platform, d.ArtifactType)
		}
	}
}

func TestImage_ConfigHasEntrypointUserAndLabels(t *testing.T) {
	image := buildImage(t, writeInputs(t, parts{})).images["linux/amd64"]
	config, err := image.ConfigFile()
	requireNoError(t, err)
	c := config.Config
	if !slices.Equal(c.Entrypoint, []string{"/usr/bin/wmco"}) || c.Cmd != nil || c.WorkingDir != "/" {
		t.Errorf("it starts %q %q in %s", c.Entrypoint, c.Cmd, c.WorkingDir)
	}
	t.Run("as a user that is a number, and not root", func(t *testing.T) {
		if c.User != "65532:65532" {
			t.Errorf("the user is %q", c.User)
		}
	})
	t.Run("with the labels of OpenShift's operators", func(t *testing.T) {
		for _, name := range []string{"name", "version", "release", "vendor", "summary", "description", "maintainer", "url",
			"com.redhat.component", "io.k8s.display-name", "io.k8s.description", "io.openshift.tags",
			"org.opencontainers.image.title", "org.opencontainers.image.version", "org.opencontainers.image.source",
			"org.opencontainers.image.licenses"} {
			if c.Labels[name] == "" {
				t.Errorf("there is no label %s", name)
			}
		}
		if c.Labels["version"] != testVersion {
			t.Errorf("the version is %q", c.Labels["version"])
		}
	})
	t.Run("and with the words of the catalog", func(t *testing.T) {
		data, err := os.ReadFile("../../deploy/olm/base.yaml")
		requireNoError(t, err)
		var base struct {
			Spec struct {
				DisplayName string
				Provider    struct{ Name string }
			}
		}
		requireNoError(t, yaml.Unmarshal(data, &base))
		if displayName != base.Spec.DisplayName || vendor != base.Spec.Provider.Name {
			t.Errorf("the image is %q of %q, and the catalog has %+v", displayName, vendor, base.Spec)
		}
	})
}

func TestImage_SameInputsGiveSameDigest(t *testing.T) {
	first := writeInputs(t, parts{})
	digest := buildImage(t, first).digest
	t.Run("in another folder, with files of another time", func(t *testing.T) {
		second := writeInputs(t, parts{})
		day := time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)
		requireNoError(t, os.Chtimes(second.agent, day, day))
		requireNoError(t, os.Chtimes(filepath.Join(second.payload, "manifest.json"), day, day))
		second.operators[0], second.operators[1] = second.operators[1], second.operators[0]
		if got := buildImage(t, second); got.digest != digest {
			t.Errorf("got %s, want %s", got.digest, digest)
		}
	})
	t.Run("over an image that is there", func(t *testing.T) {
		if got := buildImage(t, first); got.digest != digest {
			t.Errorf("got %s, want %s", got.digest, digest)
		}
	})
	t.Run("and everything in it has the time of SOURCE_DATE_EPOCH", func(t *testing.T) {
		dated := first
		dated.epoch = "1700000000"
		m := buildImage(t, dated)
		if m.digest == digest {
			t.Error("it has the digest of another time")
		}
		for name, e := range unpackImage(t, m.images["linux/amd64"]) {
			if e.ModTime.Unix() != 1700000000 {
				t.Errorf("%s is of %s", name, e.ModTime)
			}
		}
	})
}

func TestImage_FrequentChangesAffectOnlyLastLayers(t *testing.T) {
	before := buildImage(t, writeInputs(t, parts{}))
	old := layersOf(t, before.images["linux/amd64"])
	t.Run("platforms share all layers but that of the program", func(t *testing.T) {
		other := layersOf(t, before.images["linux/arm64"])
		last := len(old) - 1
		if len(other) != len(old) || !slices.Equal(other[:last], old[:last]) || other[last] == old[last] {
			t.Errorf("one has %q, the other %q", old, other)
		}
	})
	for name, test := range map[string]struct {
		change parts
		same   int // number of equal layers from the first
		differ int
	}{
		"another agent changes the layer before the program's":                 {parts{agent: "2"}, len(old) - 2, 1},
		"another kubelet changes its own layer, the pack's and the manifest's": {parts{kubelet: "2"}, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			changed := layersOf(t, buildImage(t, writeInputs(t, test.change)).images["linux/amd64"])
			differ := 0
			for i := range old {
				if old[i] != changed[i] {
					differ++
				}
			}
			if differ != test.differ || !slices.Equal(old[:test.same], changed[:test.same]) {
				t.Errorf("before %q, after %q", old, changed)
			}
		})
	}
}

func TestImage_ContainsPatches(t *testing.T) {
	kubelet := make([]byte, 50_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(kubelet) // never fails; only a patch can compress this
	old := writeInputs(t, parts{kubelet: string(kubelet)})
	earlier, err := payload.Load(old.payload)
	requireNoError(t, err)
	o := writeInputs(t, parts{})
	p, err := payload.Write(o.payload, payload.Build{Version: testVersion,
		Earlier: []*payload.Payload{earlier},
		Components: []payload.Source{
			newComponent(payload.ComponentAgent, testVersion, "wicd.exe", newProgramText("agent ")),
			newComponent("kubelet", "v1.36.4", "kubelet.exe", newProgramText("kubelet "+string(kubelet)+" changed")),
		}})
	requireNoError(t, err)
	stored, err := p.Parts()
	requireNoError(t, err)
	if len(stored.Patches) != 1 {
		t.Fatalf("there are %d patches", len(stored.Patches))
	}
	name := "payload/" + stored.Patches[0]
	if _, ok := unpackImage(t, buildImage(t, o).images["linux/amd64"])[name]; !ok {
		t.Errorf("there is no %s", name)
	}
}

func TestCreationTime(t *testing.T) {
	for epoch, want := range map[string]int64{"": 0, "1700000000": 1700000000, "0": 0} {
		if got, err := creationTime(epoch); err != nil || got.Unix() != want {
			t.Errorf("SOURCE_DATE_EPOCH=%s is %s, error %v", epoch, got, err)
		}
	}
	for _, epoch := range []string{"yesterday", "-1", "1.5"} {
		if _, err := creationTime(epoch); err == nil || !strings.Contains(err.Error(), epoch) {
			t.Errorf("SOURCE_DATE_EPOCH=%s: error %v", epoch, err)
		}
	}
}
