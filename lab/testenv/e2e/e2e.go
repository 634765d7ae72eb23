// Package e2e provides labs for the end-to-end tests of a package:
//
//	var (
//		shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift})
//		files  = e2e.NewPayload("../../build/wicd.exe", payload.Options{})
//	)
//
//	func TestMain(m *testing.M) { os.Exit(e2e.Main(m, shared.Stop, files.Remove)) }
//
//	func TestSomething(t *testing.T) {
//		r := e2e.Boot(t, testenv.Options{Cluster: shared.Cluster(t), PayloadDir: files.Directory(t), Hosts: testenv.Hosts(1)})
//		e2e.Install(t, r)
//		...
//	}
package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// WaitTimeout is the timeout for operations that take some seconds. It is long: only a failing test waits for so long,
// and a busy machine must not fail a test.
const WaitTimeout = 3 * time.Minute

// logVariable is the environment variable with the name of the log file for operators of tests. Without it, a failing
// test prints the last lines of its own operator.
const logVariable = "OPERATOR_LOG"

// Main runs the tests of a package and then the clean-up of shared resources, and returns the highest exit code.
func Main(m *testing.M, cleanups ...func() int) int {
	if err := LogOperators(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, each := range cleanups {
		code = max(code, each())
	}
	return code
}

// LogOperators makes operators log into the file named by the environment.
func LogOperators() error {
	path := os.Getenv(logVariable)
	if path == "" {
		ctrl.SetLogger(logr.Discard())
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make the log that %s names: %w", logVariable, err)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(file)))
	return nil
}

// Boot boots a lab, which ends with the test. A failing test reports the progress of everything.
func Boot(t *testing.T, options testenv.Options) *testenv.Environment {
	t.Helper()
	lines := &lastLines{}
	if options.Log.GetSink() == nil {
		options.Log = lines.newLogger()
		if os.Getenv(logVariable) != "" {
			options.Log = ctrl.Log.WithName(t.Name())
		}
	}
	r, err := testenv.New(t.Context(), options)
	if err != nil {
		t.Fatalf("boot the lab (is everything in build/ built?): %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			Explain(t, r)
			t.Logf("the operator's log: %s", lines)
		}
		if err := r.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	return r
}

// Install installs the operator with its key, and does not run it.
func Install(t *testing.T, r *testenv.Environment) {
	t.Helper()
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatalf("install the operator: %v", err)
	}
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatalf("give the operator its key: %v", err)
	}
}

// Explain logs the progress of the instances and the current disruptions.
func Explain(t *testing.T, r *testenv.Environment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	var b strings.Builder
	var instances v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &instances); err != nil {
		fmt.Fprintln(&b, err)
	}
	for i := range instances.Items {
		b.WriteString(testenv.Explain(&instances.Items[i]))
	}
	p := &v1alpha1.WindowsDisruptionPolicy{}
	key := client.ObjectKey{Namespace: r.Namespace(), Name: v1alpha1.DisruptionPolicyName}
	if err := r.Client.Get(ctx, key, p); client.IgnoreNotFound(err) != nil {
		fmt.Fprintln(&b, err)
	}
	t.Logf("the instances:\n%sthe policy's status: %+v", b.String(), p.Status)
}
