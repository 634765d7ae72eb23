// Package wine verifies end to end the behavior that depends on Windows' own interfaces, with the unmodified
// wicd.exe on Wine hosts. The control plane is real, with the RBAC rules of deploy/. The service control manager,
// registry, process table and file system are real as well. Missing parts of Wine are simulated, see
// lab/wine/standin.
package wine_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/winetestenv"
)

const (
	apiName = "api-int.lab.example.com"
	apiPort = "6443"
	// waitTimeout is the maximum time for a host to become a node, to be repaired or to be restored, on a busy machine.
	waitTimeout = 5 * time.Minute
)

// gateway is this machine's address in the network of all hosts.
var gateway = netip.MustParseAddr("10.89.255.254")

// apiURL is the URL of the API server for hosts.
const apiURL = "https://" + apiName + ":" + apiPort

var shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift, APIIntURL: apiURL})

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain runs the tests in a separate network, because tests of another checkout use the same addresses. Debian's
// archive and Go's modules cannot be reached from this network, so the dependencies of hosts are fetched before.
func testMain(m *testing.M) int {
	if wine.Available() != nil {
		return m.Run() // each test reports this
	}
	if !linuxns.IsInside() {
		if err := prefetchModules(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	names := map[string]netip.Addr{}
	for number := range maxHosts {
		names[dnsName(hostAddress(number))] = hostAddress(number)
	}
	config := linuxns.Config{Addresses: []netip.Addr{gateway, metadataAddress}, Names: names, GracePeriod: time.Minute}
	return linuxns.RunTests(config, func() int {
		if err := e2e.LogOperators(); err != nil {
			fmt.Println(err)
			return 1
		}
		stop, err := serveMetadata()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer stop()
		code := shared.Main(m)
		if dir, err := scratch(); err == nil {
			_ = os.RemoveAll(dir)
		}
		return code
	})
}

// prefetchModules prepares the common parts of all hosts, and downloads the modules of the programs that run on hosts.
func prefetchModules() error {
	if _, err := wine.Prepare(context.Background(), ""); err != nil {
		return err
	}
	command := exec.Command("go", "list", "-deps", payload.AgentPackage, "./administrator",
		"../../lab/wine/standin/program")
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("find what the programs of the hosts are made of: %w\n%s", err, output)
	}
	return nil
}

var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "wmco-wine-test-") })

// kit contains the common parts of all hosts.
var kit = sync.OnceValues(func() (*winetestenv.Kit, error) {
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	return winetestenv.Prepare(context.Background(), "", filepath.Join(dir, "node.exe"))
})

// administrator is the program in directory administrator, and administratorPath is its path on hosts.
var administrator = sync.OnceValues(func() (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "administrator.exe")
	return path, crossCompile(path, "./administrator")
})

const administratorPath = `C:\ProgramData\wmco-lab\administrator.exe`

// buildAgent builds the agent with the version.
func buildAgent(version string) (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "wicd-"+version+".exe")
	return path, crossCompile(path, payload.AgentPackage, "-X main.version="+version)
}

// crossCompile cross-compiles a program as the Makefile does.
func crossCompile(path, pkg string, ldflags ...string) error {
	flags := "-s -w"
	for _, flag := range ldflags {
		flags += " " + flag
	}
	command := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", path, pkg)
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, output)
	}
	return nil
}

// payloadOf generates the payload of an operator version.
func payloadOf(t *testing.T, version string, options payload.Options) string {
	t.Helper()
	k, err := kit()
	requireNoError(t, err)
	wicd, err := buildAgent(version)
	requireNoError(t, err)
	dir := t.TempDir()
	requireNoError(t, k.Payload(dir, wicd, version, options))
	return dir
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// payloadOptions are the options of the simulated components.
var payloadOptions payload.Options

// lab is a cluster with Wine hosts and an installed operator that does not run yet.
type lab struct {
	*testenv.Environment
	*testing.T
	hosts []*wine.Host
	// byName lists hosts by DNS name instead of address.
	byName bool
}

// listKey returns the key of a host in windows-instances.
func (l *lab) listKey(h *wine.Host) string {
	if l.byName {
		return dnsName(netip.MustParseAddr(addressOf(h)))
	}
	return addressOf(h)
}

// addresses counts the hosts of all tests, so that no test uses the address of a previous test's host.
var addresses atomic.Int32

// maxHosts is the maximum number of hosts with DNS names in all tests.
const maxHosts = 100

// hostAddress returns the address of a host by its number.
func hostAddress(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 89, 0, byte(number + 1)}) }

// dnsName returns the DNS name for a host's address.
func dnsName(address netip.Addr) string {
	return fmt.Sprintf("instance-%d.example.com", address.As4()[3])
}

// newLab creates hosts with these computer names, which no other test uses.
func newLab(t *testing.T, names ...string) *lab {
	t.Helper()
	var hosts []wine.Options
	for _, name := range names {
		hosts = append(hosts, wine.Options{Name: name})
	}
	return newLabOf(t, hosts...)
}

// newLabOf creates hosts with these options, and with defaults for unset options.
func newLabOf(t *testing.T, hosts ...wine.Options) *lab {
	t.Helper()
	requireWine(t)
	l := newInstalledLab(t, testenv.Options{Cluster: shared.Cluster(t)})
	for _, options := range hosts {
		l.addHost(options)
	}
	return l
}

// requireWine skips the test if Wine hosts are unavailable.
func requireWine(t *testing.T) {
	t.Helper()
	if err := wine.Available(); err != nil {
		t.Skipf("SKIPPED: end to end under Wine: %v", err)
	}
}

// newInstalledLab creates a lab without hosts, with the operator in the usual namespace and its key.
func newInstalledLab(t *testing.T, options testenv.Options) *lab {
	t.Helper()
	l := newBareLab(t, options)
	_, err := l.InstallOperator(t.Context(), "")
	requireNoError(t, err)
	requireNoError(t, l.CreateKey(t.Context()))
	return l
}

// newBareLab creates a lab without hosts and operator, with the default network, payload and log.
func newBareLab(t *testing.T, options testenv.Options) *lab {
	t.Helper()
	options.Network, options.PayloadDir, options.Log = testenv.RealNetwork{}, payloadOf(t, "1.0.0-lab", payloadOptions),
		ctrl.Log
	r, err := testenv.New(t.Context(), options)
	requireNoError(t, err)
	l := &lab{Environment: r, T: t}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	t.Cleanup(func() { // before the lab is closed
		if t.Failed() {
			l.logWarnings()
		}
	})
	forwardAPIServer(t, netip.MustParseAddrPort(gateway.String()+":"+apiPort).String(), r.Config.Host)
	return l
}

// logWarnings logs the events of type Warning, because a failed step of a host appears only there once the next
// attempt has succeeded.
func (l *lab) logWarnings() {
	var events corev1.EventList
	if err := l.Client.List(context.WithoutCancel(l.Context()), &events); err != nil {
		l.Logf("list the events: %v", err)
	}
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			l.Logf("%s %s: %s: %s", event.FirstTimestamp.UTC().Format("15:04:05"), event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
}

// addHost creates a host, by default with the next address. Files without a local path are copies of the
// administrator's program.
func (l *lab) addHost(options wine.Options) {
	l.Helper()
	k, err := kit()
	requireNoError(l.T, err)
	tool, err := administrator()
	requireNoError(l.T, err)
	if !options.Address.IsValid() {
		options.Address = hostAddress(int(addresses.Add(1) - 1))
	}
	options.Gateway = gateway
	options.Names = map[string]netip.Addr{apiName: gateway}
	files := map[string]string{administratorPath: tool}
	for windows, local := range options.Files {
		files[windows] = cmp.Or(local, tool)
	}
	options.Files = files
	h, err := k.AddHost(l.Context(), l.Environment, options)
	requireNoError(l.T, err)
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("host %s: %s", h.Name(), formatHostReport(h))
		}
		if err := h.Close(); err != nil {
			l.Error(err)
		}
	})
	l.hosts = append(l.hosts, h)
}

// run starts the operator.
func (l *lab) run() *testenv.Operator {
	l.Helper()
	o, err := l.RunOperator()
	requireNoError(l.T, err)
	return o
}

// list writes the hosts into windows-instances, or empties it without hosts.
func (l *lab) list(hosts ...*wine.Host) {
	l.Helper()
	entries := map[string]string{}
	for _, h := range hosts {
		entries[l.listKey(h)] = "username=Administrator"
	}
	requireNoError(l.T, l.SetInstances(l.Context(), entries))
}

// waitForInstance waits until the instance of a host, which may be nil, meets the condition.
func (l *lab) waitForInstance(h *wine.Host, what string, condition func(*v1alpha1.WindowsInstance) bool) {
	l.Helper()
	l.waitForInstanceAt(l.listKey(h), what, condition)
}

// waitForInstanceAt is like waitForInstance, for an instance listed by this address or name.
func (l *lab) waitForInstanceAt(address, what string, condition func(*v1alpha1.WindowsInstance) bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	requireNoError(l.T, l.WaitFor(ctx, address+" "+what, &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			var list v1alpha1.WindowsInstanceList
			if err := reader.List(ctx, &list); err != nil {
				return false, err
			}
			for i := range list.Items {
				if list.Items[i].Spec.Address == address {
					return condition(&list.Items[i]), nil
				}
			}
			return condition(nil), nil
		}))
}

func (l *lab) awaitReady(h *wine.Host) {
	l.Helper()
	l.waitForInstance(h, "to be Ready", testenv.IsReady)
}

func (l *lab) awaitGone(h *wine.Host) {
	l.Helper()
	l.waitForInstance(h, "to be gone", func(instance *v1alpha1.WindowsInstance) bool { return instance == nil })
}

func (l *lab) nodeOf(h *wine.Host) *corev1.Node {
	l.Helper()
	n := &corev1.Node{}
	requireNoError(l.T, l.Client.Get(l.Context(), client.ObjectKey{Name: nodeName(h)}, n))
	return n
}
