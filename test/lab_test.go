// Package test proves what the operator promises, end to end: the real control plane with RBAC on, the rights that deploy/ gives, the real
// agent for Windows, and simulated hosts behind real SSH servers.
package test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/rig"
)

var shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift, APIIntURL: "https://127.0.0.1", Audit: true})

func TestMain(m *testing.M) {
	logTo(os.Getenv("OPERATOR_LOG"))
	code := shared.Main(m)
	if dir, _ := madePayload(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// logTo writes what operators log to a file, for a look at a failed test; nowhere without a path.
func logTo(path string) {
	if path == "" {
		ctrl.SetLogger(logr.Discard())
		return
	}
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(file)))
}

// agentPath is the agent, as make has built it.
const agentPath = "../build/wicd.exe"

// madePayload is the payload with the real agent in it, made once for all tests.
var madePayload = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "wmco-test-payload-")
	if err != nil {
		return "", err
	}
	_, err = payload.Generate(dir, agentPath, "1.0.0-lab", payload.Options{})
	return dir, err
})

// limit is how long a test waits for what takes a second or two, on a busy machine.
const limit = rig.Patience

// start boots a lab with these hosts on the shared control plane.
func start(t *testing.T, options rig.Options) *rig.Rig {
	t.Helper()
	options.Cluster = shared.Cluster(t)
	dir, err := madePayload()
	if err != nil {
		t.Fatalf("make the payload (is build/wicd.exe built?): %v", err)
	}
	options.PayloadDir, options.Log = dir, ctrl.Log
	r, err := rig.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	return r
}

// installed boots a lab and installs the operator with its key, but does not run it.
func installed(t *testing.T, options rig.Options) *rig.Rig {
	t.Helper()
	r := start(t, options)
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// run starts the operator.
func run(t *testing.T, r *rig.Rig) *rig.Operator {
	t.Helper()
	o, err := r.RunOperator()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// list writes hosts into windows-instances, all when none is named.
func list(t *testing.T, r *rig.Rig, names ...string) {
	t.Helper()
	if err := r.ListHosts(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
}

// ready waits until hosts are Ready, all when none is named.
func ready(t *testing.T, r *rig.Rig, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := r.WaitReady(ctx, names...); err != nil {
		t.Fatal(err)
	}
}

// node reads a Node.
func node(t *testing.T, r *rig.Rig, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	if err := r.Client.Get(t.Context(), keyOf("", name), n); err != nil {
		t.Fatal(err)
	}
	return n
}
