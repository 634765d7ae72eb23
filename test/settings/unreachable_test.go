package settings

import (
	"context"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// L-01
func TestSettings_UnreachableHostDoesNotBlockHosts(t *testing.T) {
	l := sharedLab(t)
	before, digests := l.takeSnapshots(), l.specDigests()
	bad := l.Host("instance-1")
	address, _ := bad.Entry()
	repair := bad.Inject(winhost.RefuseConnection, winhost.Parameters{})
	ca := newAuthority(t, "while one is away")
	// One setting disrupts nodes, the other does not.
	l.requireNoError(firstError(l.SetTrustedCAs(t.Context(), ca.pem), l.SetKubeletSettings(t.Context(), map[string]any{"maxPods": 88})))
	want := []string{`file C:\k\kubelet.conf: changed`, "root " + ca.fingerprint + ": added"}
	followed := func(name string) bool {
		return slices.Equal(diffSnapshots(before[name], takeSnapshot(l.Host(name))), want)
	}
	l.awaitCondition("the others to follow", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			done, err := l.isFleetDone(ctx, reader, func(digest string) bool { return !slices.Contains(digests, digest) }, address)
			return done && followed("instance-2") && followed("instance-3"), err
		})
	if got := diffSnapshots(before["instance-1"], takeSnapshot(bad)); len(got) > 0 {
		t.Errorf("the host that is not reached changed: %s", got)
	}
	repair()
	l.awaitCondition("the host to follow when it is back", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			done, err := l.isFleetDone(ctx, reader, func(digest string) bool { return !slices.Contains(digests, digest) })
			return done && followed("instance-1"), err
		})
	l.requireNoError(firstError(l.SetTrustedCAs(t.Context(), ""), l.SetKubeletSettings(t.Context(), nil)))
	l.awaitCondition("all to be as before", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			return l.isFleetDone(ctx, reader, func(digest string) bool { return slices.Contains(digests, digest) })
		})
	l.waitForNoDisruption()
}

// L-03
func TestSettings_UnsupportedMirrorReportedAndRestApplied(t *testing.T) {
	l := sharedLab(t)
	dir := registries + `\quay.io`
	l.checkSetting(setting{
		set: func(ctx context.Context) error {
			return l.SetDigestMirrors(ctx,
				configv1.ImageDigestMirrors{Source: "quay.io/good", Mirrors: []configv1.ImageMirror{"mirror.example.com/good"}},
				configv1.ImageDigestMirrors{Source: "quay.io/team/app",
					Mirrors: []configv1.ImageMirror{"mirror.example.com/elsewhere"}},
			)
		},
		unset:   func(ctx context.Context) error { return l.SetDigestMirrors(ctx) },
		changes: []string{"file " + dir + `\hosts.toml: added`, "folder " + dir + ": added"},
	})
	l.awaitCondition("the event", &eventsv1.Event{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var list eventsv1.EventList
		err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "SettingUnsupported" && e.Type == "Warning" && e.Regarding.Kind == "Deployment" &&
				strings.Contains(e.Note, "quay.io/team/app")
		}), err
	})
}

// The operator does not follow a change that would break working nodes.
func TestSettings_DamagedCertificateLeavesNodesUnchanged(t *testing.T) {
	l := sharedLab(t)
	before, digests := l.takeSnapshots(), l.specDigests()
	hosts := l.Connections()
	certificate, key := []byte("no certificate"), []byte("no key")
	l.requireNoError(l.SetExporterTLS(t.Context(), certificate, key))
	l.awaitCondition("the operator to say so", &eventsv1.Event{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var list eventsv1.EventList
			err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Type == "Warning" && strings.Contains(e.Note, "windows-machine-config-operator-tls")
			}), err
		})
	l.requireNoError(l.SetExporterTLS(t.Context(), nil, nil))
	l.waitForIdle()
	for _, h := range l.Hosts() {
		if got := diffSnapshots(before[h.Options.Name], takeSnapshot(h)); len(got) > 0 {
			t.Errorf("host %s changed: %s", h.Options.Name, got)
		}
	}
	if n := l.Connections() - hosts; n > 0 || !slices.Equal(digests, l.specDigests()) {
		t.Errorf("hosts were contacted %d times", n)
	}
}
