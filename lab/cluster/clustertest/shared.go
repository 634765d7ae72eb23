// Package clustertest provides one control plane that the tests of a package share:
//
//	var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})
//
//	func TestMain(m *testing.M) { os.Exit(lab.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		c := lab.Cluster(t)
//		namespace := clustertest.Namespace(t, c)
//		...
//	}
package clustertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windows-machine-config/wmco/lab/cluster"
)

// Shared is a control plane that starts on first use.
type Shared struct {
	options cluster.Options
	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

// New returns a control plane that has not been started.
func New(options cluster.Options) *Shared { return &Shared{options: options} }

// Main runs the tests, stops the control plane if started, and returns the exit code.
func (s *Shared) Main(m *testing.M) int {
	return max(m.Run(), s.Stop())
}

// Stop stops the control plane if started. It returns 0, or prints the error and returns 1. A package with
// several control planes calls Stop for each after its tests.
func (s *Shared) Stop() int {
	if s.cluster == nil {
		return 0
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Cluster returns the control plane, and fails the test if the boot fails.
func (s *Shared) Cluster(t testing.TB) *cluster.Cluster {
	t.Helper()
	s.once.Do(func() { s.cluster, s.err = cluster.Start(context.Background(), s.options) })
	if s.err != nil {
		t.Fatalf("start the shared control plane: %v", s.err)
	}
	return s.cluster
}

// Namespace creates a namespace for the test and deletes it after the test, without waiting.
func Namespace(t testing.TB, c *cluster.Cluster) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := client.CoreV1().Namespaces()
	created, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := namespaces.Delete(context.Background(), created.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the namespace of the test: %v", err)
		}
	})
	return created.Name
}
