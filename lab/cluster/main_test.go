package cluster_test

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var (
	plain     = clustertest.New(cluster.Options{Audit: true})
	openshift = clustertest.New(cluster.Options{Profile: cluster.OpenShift, Platform: "Azure",
		APIIntURL: "https://127.0.0.1"})
)

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		runParent()
	}
	code := plain.Main(m)
	os.Exit(max(code, openshift.Stop()))
}

func newClientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// awaitCondition waits until the condition is true.
func awaitCondition(t *testing.T, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 3*time.Minute, true, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
