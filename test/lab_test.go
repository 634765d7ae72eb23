// Package test verifies the guarantees of the operator end to end. It uses the real control plane with RBAC
// enabled, the RBAC rules of deploy/, the real agent for Windows, and simulated hosts behind real SSH servers.
package test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
)

// asOpenShift contains the options of most tests' control planes.
var asOpenShift = cluster.Options{Profile: cluster.OpenShift, APIIntURL: "https://127.0.0.1", Audit: true}

// controlPlanes holds the unused control planes. Each starts at its first use by a test.
var controlPlanes = make(chan *clustertest.Shared, 3)

func init() {
	for range cap(controlPlanes) {
		controlPlanes <- clustertest.New(asOpenShift)
	}
}

// agentPath is the path of the agent that make builds.
const agentPath = "../build/wicd.exe"

// files provides the payload with the real agent.
var files = e2e.NewPayload(agentPath, payload.Options{SizePercent: 25})

func TestMain(m *testing.M) {
	cleanups := []func() int{files.Remove}
	for range cap(controlPlanes) {
		cleanups = append(cleanups, func() int { return (<-controlPlanes).Stop() })
	}
	os.Exit(e2e.Main(m, cleanups...))
}

const waitTimeout = e2e.WaitTimeout

// parallelCluster runs a test in parallel with other callers and returns a control plane that the test owns until its
// end. Tests that create a clock call parallelCluster first, because the call may wait.
func parallelCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	t.Parallel()
	return exclusiveCluster(t)
}

// exclusiveCluster is like parallelCluster, for a test that must not run in parallel with others. Such a test reads
// metrics, which all operators of a process share, or counts requests, which increase in a busy process.
func exclusiveCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	controlPlane := <-controlPlanes
	t.Cleanup(func() { controlPlanes <- controlPlane })
	return controlPlane.Cluster(t)
}

// parallelClusterWith is like parallelCluster, with a control plane that has other options and ends with the test.
func parallelClusterWith(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	t.Parallel()
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// start boots a lab with these hosts, in parallel with other tests if no control plane is given.
func start(t *testing.T, options testenv.Options) *testenv.Environment {
	t.Helper()
	if options.Cluster == nil {
		options.Cluster = parallelCluster(t)
	}
	if options.PayloadDir == "" {
		options.PayloadDir = files.Directory(t)
	}
	return e2e.Boot(t, options)
}

// newInstalledRig boots a lab and installs the operator with its key, without running the operator.
func newInstalledRig(t *testing.T, options testenv.Options) *testenv.Environment {
	t.Helper()
	r := start(t, options)
	e2e.Install(t, r)
	return r
}

// run starts the operator.
func run(t *testing.T, r *testenv.Environment) *testenv.Operator {
	t.Helper()
	o, err := r.RunOperator()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// list writes hosts into windows-instances, or all hosts when none is named.
func list(t *testing.T, r *testenv.Environment, names ...string) {
	t.Helper()
	if err := r.ListHosts(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
}

// waitUntilReady waits until hosts are Ready, or all hosts when none is named.
func waitUntilReady(t *testing.T, r *testenv.Environment, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if err := r.WaitReady(ctx, names...); err != nil {
		t.Fatal(err)
	}
}

func getNode(t *testing.T, r *testenv.Environment, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	if err := r.Client.Get(t.Context(), keyOf("", name), n); err != nil {
		t.Fatal(err)
	}
	return n
}
