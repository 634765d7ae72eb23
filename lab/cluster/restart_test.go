package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/lab/cluster"
)

func TestRestart(t *testing.T) {
	c := start(t, cluster.Options{})
	clients := newClientset(t, c.Config)
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	if _, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := c.PID()
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("it is another process, and the control plane has not ended", func(t *testing.T) {
		if c.PID() == before {
			t.Error("it is the same")
		}
		select {
		case <-c.Done():
			t.Error("it has ended")
		default:
		}
	})
	t.Run("clients that there were find what they had", func(t *testing.T) {
		if _, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("one that was stopped cannot be restarted", func(t *testing.T) {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if c.Restart(t.Context()) == nil {
			t.Error("no error")
		}
	})
}
