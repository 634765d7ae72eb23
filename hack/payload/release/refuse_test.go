package release

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/windows-machine-config/wmco/hack/payload/release/releasetest"
)

// unusedAddress returns an address without a listener.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	requireNoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// writeDamagedLayout writes a layout with a changed byte in one blob.
func writeDamagedLayout(t *testing.T, broken func(ovn, release v1.Image) string) string {
	t.Helper()
	ovn := newComponentImage(t)
	release := releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": "quay.invalid/ocp@" + digestOf(t, ovn)})
	dir := writeLayout(t, ovn, release)
	path := filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(broken(ovn, release), "sha256:"))
	data, err := os.ReadFile(path)
	requireNoError(t, err)
	data[len(data)/2] ^= 0x20
	requireNoError(t, os.WriteFile(path, data, 0o600))
	return dir
}

func topLayer(t *testing.T, image v1.Image, fromTop int) string {
	t.Helper()
	layers, err := image.Layers()
	requireNoError(t, err)
	return digestOf(t, layers[len(layers)-1-fromTop])
}

func TestExtractFile_InvalidReleaseRejectedInOneSentence(t *testing.T) {
	s := newServer(t, allowEveryRequest)
	good := publishRelease(t, s, newComponentImage(t))
	none := strings.Repeat("0", 64)
	for name, test := range map[string]struct {
		source func(t *testing.T) string
		want   []string
	}{
		"a registry that does not answer": {func(t *testing.T) string { return unusedAddress(t) + "/ocp-release:4.20.1" },
			[]string{"RELEASE=", "connection refused"}},
		"a name that nobody can have": {func(*testing.T) string { return "Some Release" },
			[]string{"neither a folder nor the name of an image"}},
		"a digest that the registry does not have": {func(*testing.T) string {
			return strings.Split(good, "@")[0] + "@sha256:" + none
		}, []string{none, "MANIFEST_UNKNOWN"}},
		"a folder that is no layout": {func(t *testing.T) string { return t.TempDir() }, []string{"not a folder with an OCI layout"}},
		"an image that is no release": {func(t *testing.T) string { return s.pushImage(t, "other", newComponentImage(t)) },
			[]string{"not a release image of OpenShift", releaseLabel}},
		"a release for another architecture": {func(t *testing.T) string {
			return s.pushImage(t, "z", releasetest.Release(t, "s390x", nil))
		}, []string{"no image for linux/amd64: it has linux/s390x", "x86_64"}},
		"a release for other architectures": {func(t *testing.T) string {
			tag, err := name.NewTag(s.host + "/others:1")
			requireNoError(t, err)
			requireNoError(t, remote.WriteIndex(tag, mutate.AppendManifests(empty.Index, newAddendum("arm64", releasetest.Release(t, "arm64", nil)),
				newAddendum("ppc64le", releasetest.Release(t, "ppc64le", nil)))))
			return tag.String()
		}, []string{"it has linux/arm64, linux/ppc64le"}},
		"a release without its list": {func(t *testing.T) string {
			return s.pushImage(t, "listless", releasetest.Image(t, "amd64", "4.20.1", []releasetest.Entry{releasetest.File("etc/a", "")}))
		}, []string{"it has no file /" + referencesPath}},
		"a release with something else as its list": {func(t *testing.T) string {
			return s.pushImage(t, "odd", releasetest.Image(t, "amd64", "4.20.1", []releasetest.Entry{releasetest.File(referencesPath, `{"kind":"List"}`)}))
		}, []string{"must be an ImageStream", `"List"`}},
		"a release with a list that is not JSON": {func(t *testing.T) string {
			return s.pushImage(t, "broken", releasetest.Image(t, "amd64", "4.20.1", []releasetest.Entry{releasetest.File(referencesPath, "kind: ImageStream")}))
		}, []string{"not an ImageStream"}},
		"a release without the component": {func(t *testing.T) string {
			return s.pushImage(t, "less", releasetest.Release(t, "amd64", map[string]string{"cli": good}))
		}, []string{"no component ovn-kubernetes among its 1", "4.20.1"}},
		"a release that names a component by its tag": {func(t *testing.T) string {
			return s.pushImage(t, "tagged", releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": s.host + "/ovn:latest"}))
		}, []string{"without a digest", "ovn-kubernetes"}},
		"a release whose component's image is gone": {func(t *testing.T) string {
			return s.pushImage(t, "gone", releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": s.host + "/ovn@sha256:" + none}))
		}, []string{"component ovn-kubernetes of release 4.20.1", none}},
		"a component for another architecture": {func(t *testing.T) string {
			return publishRelease(t, s, releasetest.Image(t, "arm64", "", []releasetest.Entry{releasetest.File(program, content)}))
		}, []string{"no image for linux/amd64: it has linux/arm64"}},
		"a folder without the component's image": {func(t *testing.T) string {
			return writeLayout(t, releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": "quay.invalid/ocp@sha256:" + none}))
		}, []string{"no image with this digest", "keeps digests"}},
		"a folder with two releases": {func(t *testing.T) string {
			return writeLayout(t, releasetest.Release(t, "amd64", nil), releasetest.Release(t, "amd64", map[string]string{"cli": good}))
		}, []string{"several releases"}},
		"a folder with a damaged list": {func(t *testing.T) string {
			return writeDamagedLayout(t, func(_, release v1.Image) string { return topLayer(t, release, 0) })
		}, []string{"does not have this digest"}},
		"a folder with a damaged program": {func(t *testing.T) string {
			return writeDamagedLayout(t, func(ovn, _ v1.Image) string { return topLayer(t, ovn, 1) })
		}, []string{"does not have this digest"}},
		"a folder with another image under the digest": {func(t *testing.T) string {
			ovn, other := newComponentImage(t), releasetest.Image(t, "amd64", "", []releasetest.Entry{releasetest.File(program, "other")})
			dir := writeLayout(t, ovn, other, releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": "quay.invalid/ocp@" + digestOf(t, ovn)}))
			blobs := filepath.Join(dir, "blobs", "sha256")
			manifest, err := os.ReadFile(filepath.Join(blobs, strings.TrimPrefix(digestOf(t, other), "sha256:")))
			requireNoError(t, err)
			requireNoError(t, os.WriteFile(filepath.Join(blobs, strings.TrimPrefix(digestOf(t, ovn), "sha256:")), manifest, 0o600))
			return dir
		}, []string{"does not have this digest"}},
		"a folder without a layer": {func(t *testing.T) string {
			ovn := newComponentImage(t)
			dir := writeLayout(t, ovn, releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": "quay.invalid/ocp@" + digestOf(t, ovn)}))
			requireNoError(t, os.Remove(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(topLayer(t, ovn, 1), "sha256:"))))
			return dir
		}, []string{"no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := extractComponentFile(t, test.source(t), "")
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it says %q, without %q", err, want)
				}
			}
			if strings.Contains(err.Error(), ". ") {
				t.Errorf("it says more than a sentence: %q", err)
			}
		})
	}
}

func TestExtractFile_InvalidMirrorsRejected(t *testing.T) {
	s := newServer(t, allowEveryRequest)
	release := publishRelease(t, s, newComponentImage(t))
	for name, test := range map[string]struct{ path, want string }{
		"a file that is not there": {"none/idms.yaml", "none/idms.yaml"},
		"a file that is no YAML":   {writeTempFile(t, "a: [b"), "read the mirrors"},
		"a file without a rule":    {writeTempFile(t, "kind: ConfigMap\n"), "no rule of an ImageDigestMirrorSet"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := extractComponentFile(t, release, test.path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v", err)
			}
		})
	}
	t.Run("an invalid file of credentials", func(t *testing.T) {
		t.Setenv("REGISTRY_AUTH_FILE", writeTempFile(t, "no JSON"))
		if _, _, err := extractComponentFile(t, release, ""); err == nil || !strings.Contains(err.Error(), "not a valid auth.json") {
			t.Errorf("got error %v", err)
		}
	})
}
