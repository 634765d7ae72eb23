package examples_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/deploy"
	"github.com/windows-machine-config/wmco/examples"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var lab = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // warnings of the API server
	os.Exit(lab.Main(m))
}

// newStrictClient returns a client that requests strict validation of fields.
func newStrictClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(lab.Cluster(t).Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// read returns an example with values instead of placeholders.
func read(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	data, err := fs.ReadFile(examples.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(strings.NewReplacer(placeholders...).Replace(string(data))),
		&object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// createObject creates an object, and deletes it after the test.
func createObject(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), object, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// installCRDs installs the operator's own kinds on the API server.
func installCRDs(t *testing.T, c client.Client) {
	t.Helper()
	names, err := fs.Glob(deploy.Files, "crd/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		data, err := deploy.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(data, &definition.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), definition); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		waitUntil(t, name+" is served", func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
				return false, err
			}
			value, _, err := unstructured.NestedFieldNoCopy(definition.Object, "status", "conditions")
			if err != nil || !strings.Contains(fmt.Sprint(value), "the initial names have been accepted") {
				return false, err
			}
			// The discovery used by clients follows the condition a moment later.
			group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
			_, err = c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			if meta.IsNoMatchError(err) {
				return false, nil
			}
			return err == nil, err
		})
	}
}

// waitUntil waits until the condition holds.
func waitUntil(t *testing.T, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func isNamespaced(t *testing.T, c client.Client, object client.Object) bool {
	t.Helper()
	is, err := c.IsObjectNamespaced(object)
	if meta.IsNoMatchError(err) {
		t.Fatalf("the lab does not know %s: %v", object.GetObjectKind().GroupVersionKind(), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return is
}
