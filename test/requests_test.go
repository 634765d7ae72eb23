package test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// Maximum cost of a join for the API server, as in lab/bench. The writes record state that must not be lost. They
// are for the list entry, the host key before anything is sent, the name before and after the check, the restart,
// the certificate requests and approvals, the owner of the Node, its activation, and four events. Up to four more
// writes cover all hosts that join at about the same time.
const (
	maxReads  = 35
	maxWrites = 20
	// A conflict costs another write and two reads before it, as over the Node, which the kubelet writes as well.
	conflictReads = 2
	// Concurrent work shares one read of the fleet, so a longer join reads the fleet twice. Each read costs this
	// number of requests, including one list of MachineSets.
	maxFleetReads        = 2
	requestsPerFleetRead = 8
	// On a busy machine, slow steps cause a progress write at most once per interval, and possibly another read of
	// the fleet.
	progressInterval = 5 * time.Second
)

func TestRequests_JoinNeedsFewAPIRequests(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Cluster: exclusiveCluster(t), Hosts: testenv.Hosts(1)})
	run(t, r)
	const quiet = 3 * time.Second
	e2e.RequireIdle(t, r, quiet, nil)
	log, err := audit.OpenAtEnd(r.Cluster().AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	requests := audit.CountRequests(log, audit.ServiceAccount(r.Namespace(), "windows-machine-config-operator"))
	start := time.Now()
	list(t, r)
	waitUntilReady(t, r)
	slow := int(time.Since(start) / progressInterval)
	e2e.RequireIdle(t, r, quiet, nil)
	if err := requests.Update(); err != nil {
		t.Fatal(err)
	}
	lists := requests.Kinds["list machinesets"]
	if lists < 1 || lists > maxFleetReads+slow {
		t.Errorf("the fleet was read %d times: %s", lists, requests)
	}
	reads := maxReads + requestsPerFleetRead*(lists-1) + conflictReads*requests.Conflicts
	writes := maxWrites + slow + requests.Conflicts
	t.Logf("a join costs %s, with %d conflicts", requests, requests.Conflicts)
	if requests.Reads > reads || requests.Writes > writes {
		t.Errorf("more than %d reads or %d writes: %s", reads, writes, requests)
	}
}

// An operator that loses its connections to the API server, or sees insignificant changes of its objects,
// reconciles each instance, contacts no host and writes nothing. R-056
func TestRequests_RepeatedReconcileChangesNothing(t *testing.T) {
	const hosts, quiet = 2, 3 * time.Second
	r := newInstalledRig(t, testenv.Options{Cluster: exclusiveCluster(t), Hosts: testenv.Hosts(hosts)})
	connections := &openConnections{all: map[net.Conn]bool{}}
	if _, err := r.RunOperator(func(c *operator.Config) { c.RESTConfig.Dial = connections.wrapDialer(c.RESTConfig.Dial) }); err != nil {
		t.Fatal(err)
	}
	list(t, r)
	waitUntilReady(t, r)
	e2e.RequireIdle(t, r, quiet, nil)

	monitor, err := r.MonitorActivity()
	if err != nil {
		t.Fatal(err)
	}
	before := map[*testenv.Host]int{}
	for _, h := range r.Hosts() {
		before[h] = len(h.Machine().Journal().Entries(nil))
	}
	reconciles := instanceReconciles(t)
	if connections.closeAll() == 0 {
		t.Fatal("the operator had no connection to the API server")
	}
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(t.Context(), &instances); err != nil {
		t.Fatal(err)
	}
	touched := []client.Object{
		&configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "cloud-private-key"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "windows-instances"}},
	}
	for i := range instances.Items {
		touched = append(touched, &instances.Items[i])
	}
	for _, object := range touched {
		setAnnotation(t, r, object, "lab.example.com/touched", "yes")
	}
	for deadline := time.Now().Add(waitTimeout); instanceReconciles(t) < reconciles+hosts; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the operator did not look at %d instances again", hosts)
		}
	}
	e2e.RequireIdle(t, r, quiet, nil)

	requests, sessions, err := monitor.NextActivity()
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if request.IsWrite() {
			t.Errorf("the operator wrote: %s %s", request.Verb, request.URI)
		}
	}
	if sessions > 0 {
		t.Errorf("hosts were contacted %d times", sessions)
	}
	for h, n := range before {
		if entries := slices.DeleteFunc(h.Machine().Journal().Entries(nil)[n:], e2e.IsHostActivity); len(entries) > 0 {
			t.Errorf("the operator touched %s: %+v", h.Options.Name, entries)
		}
	}
}

// instanceReconciles returns the number of instance reconciles by the operators of this process.
func instanceReconciles(t *testing.T) (n int) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if family.GetName() == "controller_runtime_reconcile_total" && label.GetName() == "controller" && label.GetValue() == "instance" {
					n += int(series.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}

// openConnections are the connections of an operator to the API server.
type openConnections struct {
	mu  sync.Mutex
	all map[net.Conn]bool
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

func (o *openConnections) wrapDialer(dial dialer) dialer {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.all[conn] = true
		}
		return conn, err
	}
}

// closeAll closes all connections, like a load balancer that restarts, and returns the number of open connections.
func (o *openConnections) closeAll() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for conn := range o.all {
		if conn.Close() == nil {
			n++
		}
	}
	clear(o.all)
	return n
}
