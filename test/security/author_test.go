package security

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// dialed counts an operator's connections per host.
type dialed struct {
	mu    sync.Mutex
	hosts map[string]int
}

// countDials counts an operator's connections to hosts.
func (d *dialed) countDials(c *operator.Config) {
	dial := c.Dial
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.hosts[host]++
		d.mu.Unlock()
		return dial(ctx, network, address)
	}
}

func (d *dialed) hostNames() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.hosts))
}

// hostile contains malicious entries of the list of hosts. No such key or value may lead to a connection.
var hostile = map[string]string{
	"127.0.0.1":       "username=Administrator",
	"localhost":       "username=Administrator",
	"0x7f000001":      "username=Administrator",
	"010.0.0.1":       "username=Administrator",
	"169.254.169.254": "username=Administrator",
	"224.0.0.1":       "username=Administrator",
	"255.255.255.255": "username=Administrator",
	"10.9.0.201":      "username=-oProxyCommand=calc.exe",
	"10.9.0.202":      "username=a\nusername=b",
	"10.9.0.203":      "username=../../../etc/passwd",
	"10.9.0.204":      "username=" + strings.Repeat("A", 100<<10),
	"10.9.0.205":      "username=a\u202eb",
	"10.9.0.206":      "username=Administrator\x00",
	"10.9.0.207":      "username=\"; Remove-Item -Recurse C:\\; \"",
	"10.9.0.208":      "command=calc.exe",
	"-oProxyCommand":  "username=Administrator",
}

//
func TestConfigMapAuthor_CanOnlyListHosts(t *testing.T) {
	l := newInstalledLab(t, testenv.Options{Hosts: []testenv.HostOptions{{Name: "good"}, {Name: "listed-strangely"}}})
	author := l.newAuthorClient()
	good, strange := l.Host("good"), l.Host("listed-strangely")
	seen := &dialed{hosts: map[string]int{}}
	l.startOperator(seen.countDials)

	entries := maps.Clone(hostile)
	entries[good.Options.Address] = "username=Administrator"
	entries[strange.Options.Address] = "username=& calc.exe" // valid in Windows, and only a name for SSH
	l.requireNoError(author.Create(t.Context(), newInstanceList(l.Namespace(), entries)))
	l.waitUntilReady("good")
	l.waitForCondition("listed-strangely", "AuthenticationFailed")
	journal := good.Machine().Journal()
	commands := journal.Count(fake.KindExec)

	l.runSubtest("each faulty entry is named, with its key and no more of its value than people read", func(l lab) {
		for address := range hostile {
			l.waitForEvent("InvalidEntry", "Key "+address+": ")
		}
		var events eventsv1.EventList
		l.requireNoError(l.Client.List(l.Context(), &events, client.InNamespace(l.Namespace())))
		for _, event := range events.Items {
			if len(event.Note) > 1024 || strings.ContainsFunc(event.Note, func(r rune) bool {
				return r < ' ' || r == '\u202e'
			}) {
				l.Errorf("event %s has a note of %d bytes: %.200q", event.Reason, len(event.Note), event.Note)
			}
		}
	})
	l.runSubtest("the operator connects to the hosts and to nobody else", func(l lab) {
		want := slices.Sorted(slices.Values([]string{good.Options.Address, strange.Options.Address}))
		if got := seen.hostNames(); !slices.Equal(got, want) {
			l.Errorf("it has connected to %q, want %q", got, want)
		}
	})
	l.runSubtest("no host has run anything but the agent", func(l lab) {
		for _, h := range []*testenv.Host{good, strange} {
			if forbidden := h.Machine().Journal().Count(winhost.KindForbidden); forbidden > 0 {
				l.Errorf("%s has seen %d commands other than the agent's", h.Options.Name, forbidden)
			}
		}
		if got := strange.Machine().Journal().Count(fake.KindExec); got > 0 {
			l.Errorf("the host that was listed strangely has run %d commands", got)
		}
	})
	l.runSubtest("another change of faulty entries does not disturb a host", func(l lab) {
		entries["10.9.0.209"] = "username=*"
		l.requireNoError(author.Update(l.Context(), newInstanceList(l.Namespace(), entries)))
		l.waitForEvent("InvalidEntry", "Key 10.9.0.209: ")
		l.waitUntilReady("good")
		if after := journal.Count(fake.KindExec); after != commands {
			l.Errorf("the good host has run %d commands because of it", after-commands)
		}
	})
}

// newAuthorClient returns a client that may only write ConfigMaps in the operator's namespace.
func (l lab) newAuthorClient() client.Client {
	l.Helper()
	object := metav1.ObjectMeta{Namespace: l.Namespace(), Name: "author-of-config-maps"}
	l.createObject(&rbacv1.Role{ObjectMeta: object, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create",
			"update", "patch", "delete"},
	}}})
	l.createObject(&rbacv1.RoleBinding{
		ObjectMeta: object, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: object.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "author"}},
	})
	author, err := client.New(l.configAs("author"), client.Options{Scheme: l.Client.Scheme()})
	l.requireNoError(err)
	l.awaitCondition("the author's rights", &rbacv1.RoleBinding{}, func(ctx context.Context, _ reader) (bool, error) {
		return author.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(l.Namespace())) == nil, nil
	})
	return author
}

func newInstanceList(namespace string, entries map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "windows-instances"}, Data: entries}
}
