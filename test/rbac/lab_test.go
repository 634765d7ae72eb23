// Package rbac verifies that the operator has exactly the permissions that it uses. The operator runs through its
// lifecycle on the lab's control plane with its shipped RBAC rules, and the API server's audit log shows the used
// permissions.
package rbac

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
	"github.com/windows-machine-config/wmco/lab/fakeolm"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
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
	os.Exit(e2e.Main(m, shared.Stop, files.Remove))
}

// files provides the payload with the real agent.
var files = e2e.NewPayload(filepath.Join(root, "build", "wicd.exe"), payload.Options{SizePercent: 25})

const waitTimeout = e2e.WaitTimeout

// lab is an environment with a test and an installed operator.
type lab struct {
	*testing.T
	*testenv.Environment
	installation installation
	signers      *signers
	answers      *answers
}

// installation describes how the operator is installed.
type installation struct {
	namespace string
	// bundle is the bundle that OLM installs; nil for the manifests in deploy/.
	bundle *fakeolm.Bundle
}

// newLab boots a lab on the control plane and installs the operator with its key, without running the operator.
func (w installation) newLab(t *testing.T) lab {
	t.Helper()
	r := e2e.Boot(t, testenv.Options{
		Cluster: shared.Cluster(t), PayloadDir: files.Directory(t), Hosts: testenv.Hosts(2), LinuxNodes: 1,
		MachineAPI: true, ServiceCA: true,
	})
	l := lab{T: t, Environment: r, installation: w, signers: &signers{byRequest: map[string]string{}},
		answers: &answers{ids: map[string]bool{}}}
	var err error
	if w.bundle == nil {
		_, err = r.InstallOperator(t.Context(), w.namespace)
	} else {
		_, err = r.InstallObjects(t.Context(), w.namespace, l.bundledObjects())
	}
	l.requireNoError(err)
	l.requireNoError(r.CreateKey(t.Context()))
	l.signers.followRequests(l)
	return l
}

// bundledObjects returns the objects that exist once OLM has installed the bundle.
func (l lab) bundledObjects() []*unstructured.Unstructured {
	l.Helper()
	namespace, err := testenv.Example("wmco-namespace.yaml")
	l.requireNoError(err)
	namespace.SetName(l.installation.namespace)
	objects := append([]*unstructured.Unstructured{namespace}, l.installation.bundle.ClusterWide()...)
	bundled, err := l.installation.bundle.Objects(l.installation.namespace)
	l.requireNoError(err)
	return append(objects, bundled...)
}

// startOperator starts an operator with leader election, so that only one of several operators is active.
func (l lab) startOperator(version, metricsAddress string) *testenv.Operator {
	l.Helper()
	o, err := l.RunOperator(func(c *operator.Config) {
		c.LeaderElection, c.Version, c.MetricsAddress = true, version, metricsAddress
		l.answers.followResponses(c.RESTConfig)
		if l.installation.bundle != nil {
			c.OperatorCondition = l.installation.bundle.Version.Name
		}
	})
	l.requireNoError(err)
	return o
}

// requireNoError ends the test when a step outside the subject of the test fails.
func (l lab) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// inTime runs a wait with a time limit.
func (l lab) inTime(wait func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), waitTimeout)
	defer cancel()
	l.requireNoError(wait(ctx))
}

// waitUntil waits until a condition holds.
func (l lab) waitUntil(what string, holds func(ctx context.Context) (bool, error)) {
	l.Helper()
	if err := wait.PollUntilContextTimeout(l.Context(), 50*time.Millisecond, waitTimeout, true, holds); err != nil {
		l.Fatalf("%s: %v", what, err)
	}
}

// signers maps certificate requests to signers: the permission to approve a request depends on the signer, which
// the audit log does not contain.
type signers struct {
	mu        sync.Mutex
	byRequest map[string]string
}

// followRequests records the certificate requests until the test ends.
func (s *signers) followRequests(l lab) {
	l.Helper()
	watch, err := l.Client.Watch(l.Context(), &certificatesv1.CertificateSigningRequestList{})
	l.requireNoError(err)
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

// signerApprovals returns the additional RBAC checks for the approvals among the events.
func (s *signers) signerApprovals(events []audit.Event) []audit.Event {
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

// followResponses records the responses to the clients of a configuration.
func (a *answers) followResponses(config *rest.Config) {
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

// missingIDs returns the IDs of the recorded responses that are missing in the events.
func (a *answers) missingIDs(events []audit.Event) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	missing := maps.Clone(a.ids)
	for _, event := range events {
		delete(missing, event.ID)
	}
	return slices.Collect(maps.Keys(missing))
}

// operatorRequests returns the requests of an operator that has ended. Watches are logged when they end.
func (l lab) operatorRequests() []audit.Event {
	l.Helper()
	log, user := audit.Open(l.Cluster().AuditLog), audit.ServiceAccount(l.installation.namespace, serviceAccount)
	var operatorEvents []audit.Event
	l.waitUntil("the audit log has all that the operator had an answer to", func(context.Context) (bool, error) {
		events, err := log.Next()
		for _, event := range events {
			if event.User.Username == user {
				operatorEvents = append(operatorEvents, event)
			}
		}
		return len(l.answers.missingIDs(operatorEvents)) == 0, err
	})
	return operatorEvents
}

// createNamespace creates a namespace if another test has not created it.
func (l lab) createNamespace(name string) {
	l.Helper()
	err := l.Client.Create(l.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	l.requireNoError(client.IgnoreAlreadyExists(err))
	l.waitUntil("namespace "+name+" has its service account", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
}
