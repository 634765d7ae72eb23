package wine_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// guide is a story of an administrator with the guide. Each chapter continues from the state at the end of the
// previous chapter.
type guide struct {
	*lab
	operator *testenv.Operator
	key      []byte // the private key that the hosts accept
	entries  map[string]string
	before   map[string]snapshot // keyed by host name
	// named has a DNS name and is listed by it. nameless is unknown to name servers. silent is an unused address.
	named, nameless *wine.Host
	silent          string
}

const guideNamespace = "windows-guide"

func TestGuide_FollowedFromInstallationToLastHost(t *testing.T) {
	requireWine(t)
	g := &guide{
		lab: newBareLab(t, testenv.Options{Cluster: shared.Cluster(t)}), entries: map[string]string{}, before: map[string]snapshot{},
		silent: hostAddress(maxHosts + 1).String(),
	}
	var public ssh.PublicKey
	g.key, public = rsaKey(t)
	keys := []ssh.PublicKey{public}
	g.addHost(wine.Options{Name: "WIN-GUIDE-1", AuthorizedKeys: keys})
	g.addHost(wine.Options{Name: "WIN-GUIDE-2", AuthorizedKeys: keys, Users: []string{"core"},
		Address: hostAddress(maxHosts)})
	g.named, g.nameless = g.hosts[0], g.hosts[1]
	for _, h := range g.hosts {
		g.before[h.Name()] = snapshotOf(t, h)
	}
	requireNoError(t, g.nameless.Stop(t.Context())) // switched on in its own chapter
	_, err := g.InstallOperator(t.Context(), guideNamespace)
	requireNoError(t, err)
	g.operator = g.run()

	for _, chapter := range []struct {
		name string
		run  func(*guide)
	}{
		//
		{"the operator waits for the key in a namespace of its own", (*guide).checkMissingKey},
		//
		{"a bad key is named", (*guide).checkBadKey},
		//
		{"a host becomes a node beside entries that are of no use", (*guide).checkBecomesNode},
		// D-4, L-22
		{"a host that is added becomes a node once it is switched on, and the first is left alone", (*guide).addNamelessHost},
		//
		{"a host that is listed once more is reported as listed twice", (*guide).listHostTwice},
		//
		{"the log of a pod can be read", (*guide).checkPodLog},
		//
		{"certificates of others are not approved", (*guide).checkForeignRequests},
		//
		{"a host that refuses the key stays a node until the key is right, and is given back", (*guide).removeNamelessHost},
		//
		{"it can be added again", (*guide).addHostAgain},
		//
		{"without the list all hosts are given back, and one that is gone for good is forgotten", (*guide).deleteList},
	} {
		passed := t.Run(chapter.name, func(t *testing.T) {
			now, l := *g, *g.lab
			l.T, now.lab = t, &l
			chapter.run(&now)
		})
		if !passed {
			t.FailNow() // the next chapter needs the state at the end of this one
		}
	}
}

// rsaKey returns a key in the format of ssh-keygen -t rsa -m PEM.
func rsaKey(t *testing.T) ([]byte, ssh.PublicKey) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	requireNoError(t, err)
	public, err := ssh.NewPublicKey(&private.PublicKey)
	requireNoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}), public
}

// writeEntries writes the entries into windows-instances.
func (g *guide) writeEntries() {
	g.Helper()
	requireNoError(g.T, g.SetInstances(g.Context(), g.entries))
}

// namedHostDNSName returns the DNS name of the named host.
func (g *guide) namedHostDNSName() string { return dnsName(netip.MustParseAddr(addressOf(g.named))) }

func (g *guide) checkMissingKey() {
	foreign := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "windows-instances"},
		Data:       map[string]string{addressOf(g.nameless): "username=core"},
	}
	requireNoError(g.T, g.Client.Create(g.Context(), foreign))
	g.entries[g.namedHostDNSName()] = "username=Administrator"
	g.writeEntries()
	g.waitForReport(g.namedHostDNSName(), v1alpha1.ReasonPrivateKeyMissing)
	var instances v1alpha1.WindowsInstanceList
	requireNoError(g.T, g.Client.List(g.Context(), &instances))
	if len(instances.Items) != 1 || instances.Items[0].Namespace != guideNamespace {
		g.Errorf("instances are %+v, want just the one of the list in the operator's namespace", instances.Items)
	}
	requireNoError(g.T, g.Client.Delete(g.Context(), foreign))
}

func (g *guide) checkBadKey() {
	requireNoError(g.T, g.SetKey(g.Context(), []byte("no key")))
	status := g.waitForReport(g.namedHostDNSName(), v1alpha1.ReasonPrivateKeyInvalid)
	for _, name := range []string{"cloud-private-key", "private-key.pem"} {
		if !strings.Contains(status, name) {
			g.Errorf("the status does not name %s:\n%s", name, status)
		}
	}
	g.awaitEvent(v1alpha1.ReasonPrivateKeyInvalid, "private-key.pem")
}

func (g *guide) checkBecomesNode() {
	proven := g.followNode(g.named)
	malformed := map[string]string{"10.89.0.251": "user=core", "10.89.0.252": "username=", "10.89.0.300": "username=core"}
	maps.Copy(g.entries, malformed)
	g.entries[g.silent] = "username=Administrator"
	g.writeEntries()
	seen := len(g.named.Journal())
	requireNoError(g.T, g.SetKey(g.Context(), g.key))
	g.waitForInstanceAt(g.namedHostDNSName(), "to be Ready", testenv.IsReady)
	proven()
	select {
	case <-g.operator.Done():
		g.Error("the operator has ended")
	default:
	}
	for key := range malformed {
		g.awaitEvent(v1alpha1.ReasonInvalidEntry, key)
		g.waitForReport(key, v1alpha1.ReasonInvalidEntry)
		delete(g.entries, key)
	}
	if status := g.waitForReport(g.silent, "Unreachable", "ConnectionTimedOut"); !strings.Contains(status, "retries") {
		g.Errorf("the status of an address that nobody has does not say what comes next:\n%s", status)
	}
	g.checkConfiguredOnce(g.named.Journal()[seen:])
}

// checkConfiguredOnce checks that each step until a host was a node ran once. Inspections during the shutdown do not
// matter.
func (g *guide) checkConfiguredOnce(journal []wine.Entry) {
	g.Helper()
	times := map[string]int{}
	for _, e := range journal {
		_, apply, applied := strings.Cut(e.Detail, nodespec.AgentProgram+" apply ")
		switch {
		case e.Kind == wine.KindUp:
			times["restart"]++
		case e.Kind == wine.KindExec && applied && strings.Contains(apply, "--payload"):
			times["payload"]++
		case e.Kind == wine.KindExec && applied:
			times[apply]++
		}
	}
	if len(times) < 4 {
		g.Errorf("the journal has only %v", times)
	}
	for what, n := range times {
		if n != 1 {
			g.Errorf("%s: %d times", what, n)
		}
	}
}

func (g *guide) addNamelessHost() {
	for h, known := range map[*wine.Host]bool{g.named: true, g.nameless: false} {
		if names, err := net.DefaultResolver.LookupAddr(g.Context(), addressOf(h)); (err == nil) != known {
			g.Fatalf("%s has the names %q (%v)", addressOf(h), names, err)
		}
	}
	seen, uid := len(g.named.Journal()), g.nodeOf(g.named).UID
	g.entries[addressOf(g.nameless)] = "username=core"
	g.writeEntries()
	g.waitForReport(addressOf(g.nameless), "Unreachable", "ConnectionTimedOut")
	proven := g.followNode(g.nameless)
	requireNoError(g.T, g.nameless.Start(g.Context()))
	g.awaitReady(g.nameless)
	proven()
	// The connection of the configuration may end a moment after the node is Ready. A new connection would show as
	// a login.
	touched := slices.DeleteFunc(g.named.Journal()[seen:], func(e wine.Entry) bool {
		return e.Kind == wine.KindDisconnect
	})
	if len(touched) > 0 || g.nodeOf(g.named).UID != uid {
		g.Errorf("the first host was touched: %+v", touched)
	}
	if !slices.ContainsFunc(g.nameless.Journal(), func(e wine.Entry) bool {
		return e.Kind == wine.KindLogin && strings.HasPrefix(e.Detail, "core from")
	}) {
		g.Error("core has not logged in")
	}
}

func (g *guide) listHostTwice() {
	second := addressOf(g.named)
	g.entries[second] = "username=Administrator"
	g.writeEntries()
	g.waitForReport(second, v1alpha1.ReasonDuplicateHost)
	var nodes corev1.NodeList
	requireNoError(g.T, g.Client.List(g.Context(), &nodes, client.HasLabels{v1alpha1.LabelBYOH}))
	if len(nodes.Items) != len(g.hosts) || g.named.Boots() != 2 {
		g.Errorf("%d nodes of %d hosts; %d boots", len(nodes.Items), len(g.hosts), g.named.Boots())
	}
	delete(g.entries, second)
	g.writeEntries()
	g.waitForInstanceAt(second, "to be gone", func(instance *v1alpha1.WindowsInstance) bool { return instance == nil })
	g.waitForInstanceAt(g.namedHostDNSName(), "to be Ready", testenv.IsReady)
}

func (g *guide) removeNamelessHost() {
	h := g.nameless
	other, _ := rsaKey(g.T)
	requireNoError(g.T, g.SetKey(g.Context(), other))
	g.waitForReport(addressOf(h), "AuthenticationFailed")
	g.awaitEvent("AuthenticationFailed", addressOf(h))
	delete(g.entries, addressOf(h))
	g.writeEntries()
	g.waitForInstance(h, "to say that it stays a node", func(instance *v1alpha1.WindowsInstance) bool {
		return instance != nil && instance.Spec.DesiredState == v1alpha1.DesiredStateRemoved &&
			instance.Status.Summary == "AuthenticationFailed" && strings.Contains(instance.Status.NextAction, "The Node is kept")
	})
	if n := g.nodeOf(h); n.DeletionTimestamp != nil {
		g.Errorf("the node is being deleted since %s", n.DeletionTimestamp)
	}
	requireNoError(g.T, g.SetKey(g.Context(), g.key))
	g.awaitGone(h)
	g.checkRestored(h)
	if err := g.Client.Get(g.Context(), client.ObjectKey{Namespace: "default", Name: guidePod},
		&corev1.Pod{}); !apierrors.IsNotFound(err) {
		g.Errorf("the pod on its node is still there (%v)", err)
	}
	g.waitForInstanceAt(g.namedHostDNSName(), "to be Ready", testenv.IsReady)
}

func (g *guide) addHostAgain() {
	g.entries[addressOf(g.nameless)] = "username=core"
	g.writeEntries()
	g.awaitReady(g.nameless)
}

func (g *guide) deleteList() {
	stopped := g.nameless
	requireNoError(g.T, stopped.Stop(g.Context()))
	requireNoError(g.T, g.DeleteInstances(g.Context()))
	g.waitForInstanceAt(g.namedHostDNSName(), "to be gone", func(instance *v1alpha1.WindowsInstance) bool { return instance == nil })
	g.checkRestored(g.named)

	var instance v1alpha1.WindowsInstance
	g.waitForInstance(stopped, "to say how to go on without the host", func(i *v1alpha1.WindowsInstance) bool {
		if i != nil {
			instance = *i
		}
		return i != nil && strings.Contains(i.Status.NextAction, v1alpha1.AnnotationForgetHost)
	})
	g.nodeOf(stopped) // kept until an administrator decides
	patch := `{"metadata":{"annotations":{"` + v1alpha1.AnnotationForgetHost + `":"true"}}}`
	requireNoError(g.T, g.Client.Patch(g.Context(), &instance, client.RawPatch("application/merge-patch+json", []byte(patch))))
	g.awaitGone(stopped)
	g.awaitEvent("HostNotCleanedUp", "Containers feature")
	g.checkNothingLeft(stopped)
	g.waitForInstanceAt(g.silent, "to be gone", func(instance *v1alpha1.WindowsInstance) bool { return instance == nil })
	var left v1alpha1.WindowsInstanceList
	requireNoError(g.T, g.Client.List(g.Context(), &left))
	if len(left.Items) > 0 {
		g.Errorf("instances are left: %+v", left.Items)
	}
}

// checkRestored checks that a host is restored to its original state, and that the cluster holds nothing of the host.
func (g *guide) checkRestored(h *wine.Host) {
	g.Helper()
	if diff := cmp.Diff(g.before[h.Name()], snapshotOf(g.T, h)); diff != "" {
		g.Errorf("%s is not as it was (-before +after):\n%s", h.Name(), diff)
	}
	g.checkNothingLeft(h)
}
