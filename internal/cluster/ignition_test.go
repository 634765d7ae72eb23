package cluster

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// ignitionWith returns an Ignition with one file.
func ignitionWith(t *testing.T, contents string) workerIgnition {
	t.Helper()
	raw := fmt.Sprintf(`{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":%s}]}}`, contents)
	worker, err := parseIgnition([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

func TestIgnition_ReadsEveryFileEncoding(t *testing.T) {
	const want = "a: 100%\nb: c\n"
	packed := base64.StdEncoding.EncodeToString(compressGzip(t, want))
	for name, contents := range map[string]string{
		"percent-encoded":             `{"source":"data:,a%3A%20100%25%0Ab%3A%20c%0A"}`,
		"percent-encoded with a type": `{"source":"data:text/plain;charset=utf-8,a%3A%20100%25%0Ab:%20c%0A"}`,
		"base64":                      `{"source":"data:;base64,` + base64.StdEncoding.EncodeToString([]byte(want)) + `"}`,
		"base64 of gzip":              `{"compression":"gzip","source":"data:;base64,` + packed + `"}`,
		"compression left empty":      `{"compression":"","source":"data:,a%3A%20100%25%0Ab%3A%20c%0A"}`,
	} {
		t.Run(name, func(t *testing.T) {
			content, found, err := ignitionWith(t, contents).fileContent("/a")
			if err != nil || !found || string(content) != want {
				t.Errorf("got %q, found %v, error %v", content, found, err)
			}
		})
	}
	t.Run("an empty file is there", func(t *testing.T) {
		if content, found, err := ignitionWith(t, `{"source":""}`).fileContent("/a"); err != nil || !found || len(content) > 0 {
			t.Errorf("got %q, found %v, error %v", content, found, err)
		}
	})
	for name, contents := range map[string]string{
		"a file that is to be fetched from elsewhere": `{"source":"https://example.com/canary"}`,
		"what says gzip and is none":                  `{"compression":"gzip","source":"data:,canary"}`,
		"gzip that was cut short": `{"compression":"gzip","source":"data:;base64,` +
			packed[:len(packed)/8*4] + `"}`,
	} {
		t.Run(name+" is an error that repeats nothing of it", func(t *testing.T) {
			_, found, err := ignitionWith(t, contents).fileContent("/a")
			if err == nil || !found || strings.Contains(err.Error(), "canary") {
				t.Errorf("found %v, error %v", found, err)
			}
		})
	}
}

// D-3
func TestRead_FollowsOnlyWorkerPool(t *testing.T) {
	f := newFixture(t)
	c := f.newClient(t)
	f.files[kubeletConfigPath] = file{content: strings.Replace(kubeletConfig, "cluster.local", "another.local", 1)}
	other := f.rawIgnition(t)
	for pool, rendered := range map[string]string{
		// Both names begin like the configuration of the workers, and were rendered later.
		"worker-gpu": "rendered-worker-gpu-2", "worker-infra": "rendered-worker-2",
	} {
		object := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: pool},
			Spec: machineconfigv1.MachineConfigPoolSpec{
				Configuration: machineconfigv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: rendered}},
			}}
		config := &machineconfigv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: rendered}}
		config.Spec.Config.Raw = other
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := Read(t.Context(), c, operatorNamespace, nodespec.ServingCertificate{}); err != nil || got.Kubelet.ClusterDomain != "cluster.local" {
		t.Errorf("got %+v, error %v", got.Kubelet, err)
	}
}
