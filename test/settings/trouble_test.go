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
func TestAHostThatCannotBeReachedHoldsUpNoOther(t *testing.T) {
	l := shared(t)
	before, digests := l.looks(), l.digests()
	bad := l.Host("instance-1")
	address, _ := bad.Entry()
	repair := bad.Inject(winhost.RefuseConnection, winhost.Parameters{})
	ca := authority(t, "while one is away")
	// One setting disrupts nodes, the other does not.
	l.must(first(l.SetTrustedCAs(t.Context(), ca.pem), l.SetKubeletSettings(t.Context(), map[string]any{"maxPods": 88})))
	wanted := []string{`file C:\k\kubelet.conf: changed`, "root " + ca.fingerprint + ": added"}
	followed := func(name string) bool { return slices.Equal(changes(before[name], look(l.Host(name))), wanted) }
	l.eventually("the others to follow", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			done, err := l.done(ctx, reader, func(digest string) bool { return !slices.Contains(digests, digest) }, address)
			return done && followed("instance-2") && followed("instance-3"), err
		})
	if got := changes(before["instance-1"], look(bad)); len(got) > 0 {
		t.Errorf("the host that is not reached changed: %s", got)
	}
	repair()
	l.eventually("the host to follow when it is back", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			done, err := l.done(ctx, reader, func(digest string) bool { return !slices.Contains(digests, digest) })
			return done && followed("instance-1"), err
		})
	l.must(first(l.SetTrustedCAs(t.Context(), ""), l.SetKubeletSettings(t.Context(), nil)))
	l.eventually("all to be as before", &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			return l.done(ctx, reader, func(digest string) bool { return slices.Contains(digests, digest) })
		})
	l.undisturbed()
}

// L-03
func TestWhatCannotBeFollowedIsToldAndTheRestIsDone(t *testing.T) {
	l := shared(t)
	folder := registries + `\quay.io`
	l.follows(setting{
		set: func(ctx context.Context) error {
			return l.SetDigestMirrors(ctx,
				configv1.ImageDigestMirrors{Source: "quay.io/good", Mirrors: []configv1.ImageMirror{"mirror.example.com/good"}},
				configv1.ImageDigestMirrors{Source: "quay.io/team/app",
					Mirrors: []configv1.ImageMirror{"mirror.example.com/elsewhere"}},
			)
		},
		unset:   func(ctx context.Context) error { return l.SetDigestMirrors(ctx) },
		changes: []string{"file " + folder + `\hosts.toml: added`, "folder " + folder + ": added"},
	})
	l.eventually("the event", &eventsv1.Event{}, func(ctx context.Context, reader client.Reader) (bool, error) {
		var list eventsv1.EventList
		err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "SettingUnsupported" && e.Type == "Warning" && e.Regarding.Kind == "Deployment" &&
				strings.Contains(e.Note, "quay.io/team/app")
		}), err
	})
}

// The operator does not follow a change that would break working nodes.
func TestADamagedCertificateLeavesNodesAsTheyAre(t *testing.T) {
	l := shared(t)
	before, digests := l.looks(), l.digests()
	hosts := l.Connections()
	certificate, key := []byte("no certificate"), []byte("no key")
	l.must(l.SetExporterTLS(t.Context(), certificate, key))
	l.eventually("the operator to say so", &eventsv1.Event{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var list eventsv1.EventList
			err := reader.List(ctx, &list, client.InNamespace(l.Namespace()))
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Type == "Warning" && strings.Contains(e.Note, "windows-machine-config-operator-tls")
			}), err
		})
	l.must(l.SetExporterTLS(t.Context(), nil, nil))
	l.silent()
	for _, h := range l.Hosts() {
		if got := changes(before[h.Options.Name], look(h)); len(got) > 0 {
			t.Errorf("host %s changed: %s", h.Options.Name, got)
		}
	}
	if n := l.Connections() - hosts; n > 0 || !slices.Equal(digests, l.digests()) {
		t.Errorf("hosts were contacted %d times", n)
	}
}
