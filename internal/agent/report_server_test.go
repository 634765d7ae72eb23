package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/clock"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

const (
	nodeURL = "https://api-int.example.com:6443/api/v1/nodes/node-a"
	caFile  = `C:\k\bootstrap-ca.crt`
)

// withCondition returns the spec of a node whose agent publishes its condition.
func withCondition(spec nodespec.NodeSpec) nodespec.NodeSpec {
	spec.Reporting = &nodespec.Reporting{URL: nodeURL, CAFile: caFile}
	spec.Files = append(slices.Clone(spec.Files), nodespec.File{Path: caFile, Content: "authorities\n"})
	return spec
}

// written is a request of the agent received by the API server.
type written struct {
	as          report.Credentials
	method, url string
	body        []byte
}

// nodeServer stores a Node like a real API server.
type nodeServer struct {
	mu       sync.Mutex
	node     corev1.Node
	busy     int
	requests []written
	patches  int // accepted patches
	// answer answers a request; nil serves the request.
	answer func(ctx context.Context) (int, error)
}

func newNodeServer() *nodeServer {
	return &nodeServer{node: corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}}
}

// Send implements report.APIServer.
func (n *nodeServer) Send(ctx context.Context, as report.Credentials, method, url string, body []byte) (int, []byte, error) {
	n.mu.Lock()
	n.requests = append(n.requests, written{as, method, url, body})
	n.busy++
	answer := n.answer
	n.mu.Unlock()
	defer func() { n.mu.Lock(); defer n.mu.Unlock(); n.busy-- }()
	if answer != nil {
		if code, err := answer(ctx); err != nil || code != http.StatusOK {
			return code, []byte(`{"kind":"Status","message":"the server is closed"}`), err
		}
	}
	if (method != http.MethodGet || url != nodeURL) && (method != http.MethodPatch || url != nodeURL+"/status") {
		return http.StatusForbidden, []byte(`{"kind":"Status","message":"kubelets may not"}`), nil // as the node authorizer does
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before, err := json.Marshal(n.node)
	if err != nil || method == http.MethodGet {
		return http.StatusOK, before, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Node{})
	if err != nil {
		return http.StatusUnprocessableEntity, nil, nil
	}
	n.node, n.patches = corev1.Node{}, n.patches+1
	return http.StatusOK, after, json.Unmarshal(after, &n.node)
}

func (n *nodeServer) setAnswer(answer func(ctx context.Context) (int, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// requestCounts returns the numbers of received requests and accepted patches.
func (n *nodeServer) requestCounts() (requests, patches int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.requests), n.patches
}

func (n *nodeServer) isBusy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy > 0
}

func (n *nodeServer) requestAt(i int) written {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests[i]
}

// configCondition returns the Node's condition WindowsConfiguration.
func (n *nodeServer) configCondition() corev1.NodeCondition {
	return n.conditionOf(nodespec.ConditionConfiguration)
}

func (n *nodeServer) conditionOf(kind corev1.NodeConditionType) corev1.NodeCondition {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// setConditionUnknown sets the condition to Unknown, as the operator does while the agent is silent.
func (n *nodeServer) setConditionUnknown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.node.Status.Conditions {
		if c := &n.node.Status.Conditions[i]; c.Type == nodespec.ConditionConfiguration {
			c.Status, c.Reason = corev1.ConditionUnknown, nodespec.ConfigurationAgentSilent
		}
	}
}

// newPublishingRig returns a node whose agent has written its condition for the first time.
func newPublishingRig(t *testing.T) (*rig, *nodeServer, nodespec.NodeSpec) {
	t.Helper()
	n := newNodeServer()
	r := newNodeRig(t, func(r *rig) { r.api, r.validity = n, 30*24*time.Hour })
	spec := withCondition(r.fullSpec())
	r.mustResult(r.apply(spec))
	r.passUntil("a first condition", func() bool { return n.configCondition().Status == corev1.ConditionTrue })
	return r, n, spec
}

// passAnswered advances the time after the current attempt has its response, which takes real time rather than
// the time of the host.
func (r *rig) passAnswered(by time.Duration) {
	r.Helper()
	if n, is := r.api.(*nodeServer); is {
		for n.isBusy() && r.ctx.Err() == nil {
			runtime.Gosched()
		}
	}
	r.advanceTime(by)
}

// passUntil advances the time of the agent's service until the condition holds.
func (r *rig) passUntil(what string, condition func() bool) {
	r.Helper()
	for !condition() {
		if r.ctx.Err() != nil {
			r.Fatalf("waited in vain for %s; the log: %s", what, r.readLog())
		}
		r.passAnswered(timeouts.DriftPollInterval)
	}
}

// checkQuiet advances the time while the condition may only be written as a heartbeat.
func (r *rig) checkQuiet(n *nodeServer) {
	r.Helper()
	message := func() string {
		c := n.configCondition()
		return fmt.Sprint(c.Status, c.Reason, c.Message, c.LastTransitionTime)
	}
	before, _ := n.requestCounts()
	was := message()
	for range 4 * int(timeouts.ConditionInterval/timeouts.DriftCheckInterval) {
		r.passAnswered(timeouts.DriftCheckInterval)
	}
	if after, _ := n.requestCounts(); after-before > 2*5 || message() != was {
		r.Errorf("%d requests more; it says %s, and said %s", after-before, message(), was)
	}
}

// ahead is a clock that is ahead by the given duration.
type ahead struct {
	clock.RealClock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.RealClock.Now().Add(a.by) }

func (a ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }
