package release

import (
	"encoding/base64"
	"net/http"
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

func TestExtractFile_FromReleaseImage(t *testing.T) {
	s := newServer(t, allowEveryRequest)
	byDigest := publishRelease(t, s, newComponentImage(t))
	for name, source := range map[string]string{
		"by its digest": byDigest,
		"by its tag":    s.host + "/openshift-release-dev/ocp-release:pushed",
	} {
		t.Run(name, func(t *testing.T) {
			got, origin, err := extractComponentFile(t, source, "")
			requireNoError(t, err)
			if got != content {
				t.Errorf("it is %q", got)
			}
			wantImage := s.host + "/openshift-release-dev/ocp-v4.0-art-dev@" + digestOf(t, newComponentImage(t))
			_, digest, _ := strings.Cut(byDigest, "@")
			if origin.Image != wantImage || origin.Release != "4.20.1 ("+digest+")" {
				t.Errorf("its origin is %+v", origin)
			}
		})
	}
	t.Run("of a release for several architectures the one for amd64", func(t *testing.T) {
		ovn := s.pushImage(t, "art-dev", newComponentImage(t))
		index := mutate.AppendManifests(empty.Index,
			newAddendum("arm64", releasetest.Release(t, "arm64", nil)),
			newAddendum("amd64", releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": ovn})))
		tag, err := name.NewTag(s.host + "/multi:4.20.1-multi")
		requireNoError(t, err)
		requireNoError(t, remote.WriteIndex(tag, index, remote.WithContext(t.Context())))
		if got, _, err := extractComponentFile(t, tag.String(), ""); err != nil || got != content {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}

func newAddendum(architecture string, image v1.Image) mutate.IndexAddendum {
	return mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: "linux", Architecture: architecture}}}
}

func TestExtractFile_ReleaseOnDiskNeedsNoNetwork(t *testing.T) {
	ovn := newComponentImage(t)
	release := releasetest.Release(t, "amd64", map[string]string{"ovn-kubernetes": "quay.invalid/ocp@" + digestOf(t, ovn)})
	got, origin, err := extractComponentFile(t, writeLayout(t, ovn, release), "")
	requireNoError(t, err)
	if got != content || origin.Image != "quay.invalid/ocp@"+digestOf(t, ovn) {
		t.Errorf("got %q from %+v", got, origin)
	}
}

func TestExtractFile_ImagesPulledFromMirrors(t *testing.T) {
	const source = "quay.invalid/openshift-release-dev/ocp-v4.0-art-dev"
	s := newServer(t, allowEveryRequest)
	ovn := newComponentImage(t)
	// The release's original names are unreachable.
	release := s.pushImage(t, "mirrored/release", releasetest.Release(t, "amd64",
		map[string]string{"ovn-kubernetes": source + "@" + digestOf(t, ovn)}))
	s.pushImage(t, "mirrored/content/ocp-v4.0-art-dev", ovn)
	digests := "kind: ImageDigestMirrorSet\nspec:\n  imageDigestMirrors:\n  - source: quay.invalid/openshift-release-dev\n" +
		"    mirrors: [" + s.host + "/nothing, " + s.host + "/mirrored/content]\n"
	policy := "kind: ImageContentSourcePolicy\nspec:\n  repositoryDigestMirrors:\n  - source: " + source +
		"\n    mirrors: [" + s.host + "/mirrored/content/ocp-v4.0-art-dev]\n"
	for name, text := range map[string]string{
		"of an ImageDigestMirrorSet, the second after the first": digests,
		"of an ImageContentSourcePolicy":                         policy,
		"of the second object in a file":                         "kind: ImageTagMirrorSet\nspec: {}\n---\n" + digests,
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, err := extractComponentFile(t, release, writeTempFile(t, text)); err != nil || got != content {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
	t.Run("beside the release image without any file", func(t *testing.T) {
		s.pushImage(t, "mirrored/release", ovn)
		if got, _, err := extractComponentFile(t, release, ""); err != nil || got != content {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}

func TestExtractFile_NeverContactSourceHonored(t *testing.T) {
	s := newServer(t, allowEveryRequest)
	release := publishRelease(t, s, newComponentImage(t))
	mirrors := writeTempFile(t, "kind: ImageDigestMirrorSet\nspec:\n  imageDigestMirrors:\n  - source: "+s.host+
		"/openshift-release-dev/ocp-v4.0-art-dev\n    mirrors: ["+s.host+"/nothing]\n    mirrorSourcePolicy: NeverContactSource\n")
	_, _, err := extractComponentFile(t, release, mirrors)
	if err == nil || !strings.Contains(err.Error(), "NeverContactSource") {
		t.Errorf("got error %v", err)
	}
	if s.hasRequest("GET /v2/openshift-release-dev/ocp-v4.0-art-dev/") {
		t.Error("it was asked")
	}
}

func TestExtractFile_PullSecretAuthenticates(t *testing.T) {
	ready := false // the registry is filled first
	s := newServer(t, func(r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		return !ready || user == "puller" && password == "secret"
	})
	release := publishRelease(t, s, newComponentImage(t))
	ready = true
	auth := base64.StdEncoding.EncodeToString([]byte("puller:secret"))
	t.Setenv("HOME", t.TempDir())
	requireNoError(t, os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".docker"), 0o755))
	// Docker's file must not take precedence over the given file.
	requireNoError(t, os.WriteFile(filepath.Join(os.Getenv("HOME"), ".docker", "config.json"),
		[]byte(`{"auths":{"`+s.host+`":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("old:old"))+`"}}}`), 0o600))
	for name, scope := range map[string]string{
		"for the registry":         s.host,
		"for a part of a registry": s.host + "/openshift-release-dev",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REGISTRY_AUTH_FILE", writeTempFile(t, `{"auths":{"`+scope+`":{"auth":"`+auth+`","email":"a@b"}}}`))
			if got, _, err := extractComponentFile(t, release, ""); err != nil || got != content {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
	t.Run("a wrong one is refused, and not shown", func(t *testing.T) {
		t.Setenv("REGISTRY_AUTH_FILE", "")
		_, _, err := extractComponentFile(t, release, "")
		if err == nil || !strings.Contains(err.Error(), "authentication required") || strings.Contains(err.Error(), "old") {
			t.Errorf("got error %v", err)
		}
	})
}

func writeTempFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	requireNoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
