// Package rights verifies that the operator has exactly the permissions that it uses. The operator runs through its
// lifecycle on the lab's control plane with its shipped RBAC rules, and the API server's audit log shows the used
// permissions.
package rights

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/olm"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
)

const (
	root            = "../.."
	serviceAccount  = "windows-machine-config-operator"
	bundleManifests = root + "/deploy/olm/bundle/manifests"
)

var shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift, Platform: "AWS",
	APIIntURL: "https://127.0.0.1", Audit: true})

func TestMain(m *testing.M) {
	// API servers before Kubernetes 1.34 report only changes to watchers. With such a server, an informer lists
	// first and needs a separate permission for it.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		panic(err)
	}
	os.Exit(rigtest.Main(m, shared.Stop, files.Remove))
}

// files provides the payload with the real agent.
var files = rigtest.NewPayload(filepath.Join(root, "build", "wicd.exe"), payload.Options{SizePercent: 25})

const limit = rigtest.Patience

// lab is a rig with a test and an installed operator.
type lab struct {
	*testing.T
	*rig.Rig
	way     way
	signers *signers
	answers *answers
}

// way describes how the operator is installed.
type way struct {
	namespace string
	// bundle is the bundle that OLM installs; nil for the manifests in deploy/.
	bundle *olm.Bundle
}

// installed boots a lab on the control plane and installs the operator with its key, without running the operator.
func (w way) installed(t *testing.T) lab {
	t.Helper()
	r := rigtest.Boot(t, rig.Options{
		Cluster: shared.Cluster(t), PayloadDir: files.Directory(t), Hosts: rig.Hosts(2), LinuxNodes: 1,
		MachineAPI: true, ServiceCA: true,
	})
	l := lab{T: t, Rig: r, way: w, signers: &signers{byRequest: map[string]string{}},
		answers: &answers{ids: map[string]bool{}}}
	var err error
	if w.bundle == nil {
		_, err = r.InstallOperator(t.Context(), w.namespace)
	} else {
		_, err = r.InstallObjects(t.Context(), w.namespace, l.bundled())
	}
	l.must(err)
	l.must(r.CreateKey(t.Context()))
	l.signers.follow(l)
	return l
}

// bundled returns the objects that exist once OLM has installed the bundle.
func (l lab) bundled() []*unstructured.Unstructured {
	l.Helper()
	namespace, err := rig.Example("wmco-namespace.yaml")
	l.must(err)
	namespace.SetName(l.way.namespace)
	objects := append([]*unstructured.Unstructured{namespace}, l.way.bundle.ClusterWide()...)
	made, err := l.way.bundle.Objects(l.way.namespace)
	l.must(err)
	return append(objects, made...)
}

// operate starts an operator with leader election, so that only one of several operators is active.
func (l lab) operate(version, metricsAddress string) *rig.Operator {
	l.Helper()
	o, err := l.RunOperator(func(c *operator.Config) {
		c.LeaderElection, c.Version, c.MetricsAddress = true, version, metricsAddress
		l.answers.follow(c.RESTConfig)
		if l.way.bundle != nil {
			c.OperatorCondition = l.way.bundle.Version.Name
		}
	})
	l.must(err)
	return o
}

// must ends the test when a step outside the subject of the test fails.
func (l lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// inTime runs a wait with a time limit.
func (l lab) inTime(wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	defer cancel()
	l.must(wait(ctx))
}

// eventually waits until a condition holds.
func (l lab) eventually(what string, holds func(ctx context.Context) (bool, error)) {
	l.Helper()
	if err := wait.PollUntilContextTimeout(l.Context(), 50*time.Millisecond, limit, true, holds); err != nil {
		l.Fatalf("%s: %v", what, err)
	}
}

// signers maps certificate requests to signers: the permission to approve a request depends on the signer, which
// the audit log does not contain.
type signers struct {
	mu        sync.Mutex
	byRequest map[string]string
}

// follow records the certificate requests until the test ends.
func (s *signers) follow(l lab) {
	l.Helper()
	watch, err := l.Client.Watch(l.Context(), &certificatesv1.CertificateSigningRequestList{})
	l.must(err)
	done := make(chan struct{})
	l.Cleanup(func() { watch.Stop(); <-done })
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if request, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok {
				s.mu.Lock()
				s.byRequest[request.Name] = request.Spec.SignerName
				s.mu.Unlock()
			}
		}
	}()
}

// approvals returns the additional RBAC checks for the approvals among the events.
func (s *signers) approvals(events []audit.Event) []audit.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var approvals []audit.Event
	for _, event := range events {
		if event.Resource() != "certificatesigningrequests/approval" || event.Response.Code != 200 {
			continue
		}
		var approval audit.Event
		approval.Verb, approval.Object.APIGroup, approval.Object.Resource = "approve", certificatesv1.GroupName, "signers"
		approval.Object.Name = s.byRequest[event.Object.Name]
		approvals = append(approvals, approval)
	}
	return approvals
}

// answers contains the IDs of the requests with a response to an operator.
type answers struct {
	mu  sync.Mutex
	ids map[string]bool
}

// follow records the responses to the clients of a configuration.
func (a *answers) follow(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.ids[response.Header.Get("Audit-Id")] = true
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// without returns the IDs of the recorded responses that are missing in the events.
func (a *answers) without(events []audit.Event) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	missing := maps.Clone(a.ids)
	for _, event := range events {
		delete(missing, event.ID)
	}
	return slices.Collect(maps.Keys(missing))
}

// requests returns the requests of an operator that has ended. Watches are logged when they end.
func (l lab) requests() []audit.Event {
	l.Helper()
	log, user := audit.Open(l.Cluster().AuditLog), audit.ServiceAccount(l.way.namespace, serviceAccount)
	var own []audit.Event
	l.eventually("the audit log has all that the operator had an answer to", func(context.Context) (bool, error) {
		events, err := log.Next()
		for _, event := range events {
			if event.User.Username == user {
				own = append(own, event)
			}
		}
		return len(l.answers.without(own)) == 0, err
	})
	return own
}

// makeNamespace creates a namespace if another test has not created it.
func (l lab) makeNamespace(name string) {
	l.Helper()
	err := l.Client.Create(l.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	l.must(client.IgnoreAlreadyExists(err))
	l.eventually("namespace "+name+" has its service account", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
}
