package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/linuxns"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// TestMain runs the tests in the network of the demo, where the API server reaches kubelets.
func TestMain(m *testing.M) {
	api := netip.MustParseAddr(apiAddress)
	config := linuxns.Config{
		Addresses: []netip.Addr{api, netip.MustParseAddr(testenv.Address(1))},
		Names:     map[string]netip.Addr{"api-int." + domain: api},
	}
	os.Exit(linuxns.RunTests(config, m.Run))
}

//
func TestPodLogs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r, err := testenv.New(ctx, testenv.Options{
		Hosts: testenv.Hosts(1), Network: testenv.RealNetwork{},
		ControlPlane: cluster.Options{Listen: apiAddress + ":" + apiPort, Domain: domain},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := setUpReadyHost(ctx, r); err != nil {
		t.Fatal(err)
	}
	t.Run("the logs of a pod on the node come through the API server", func(t *testing.T) {
		pod, err := testenv.Example("windows-pod.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(ctx, pod); err != nil {
			t.Fatal(err)
		}
		err = r.WaitFor(ctx, "the pod to run", &corev1.Pod{}, func(ctx context.Context, reader client.Reader) (bool, error) {
			var running corev1.Pod
			err := reader.Get(ctx, client.ObjectKeyFromObject(pod), &running)
			return running.Status.Phase == corev1.PodRunning, client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Fatal(err)
		}
		logs, err := podLogs(ctx, r, pod)
		if err != nil || !strings.Contains(logs, "instance-1") {
			t.Errorf("the logs are %q, %v", logs, err)
		}
	})
}

func setUpReadyHost(ctx context.Context, r *testenv.Environment) error {
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		return err
	}
	if err := r.CreateKey(ctx); err != nil {
		return err
	}
	if err := r.ListHosts(ctx); err != nil {
		return err
	}
	if _, err := r.RunOperator(); err != nil {
		return err
	}
	return r.WaitReady(ctx)
}

func podLogs(ctx context.Context, r *testenv.Environment, pod client.Object) (string, error) {
	clientset, err := kubernetes.NewForConfig(r.Config)
	if err != nil {
		return "", err
	}
	stream, err := clientset.CoreV1().Pods(pod.GetNamespace()).GetLogs(pod.GetName(), &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("open the logs: %w", err)
	}
	defer stream.Close()
	logs, err := io.ReadAll(stream)
	return string(logs), err
}
