package testenv

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// the operator has only the rights of deploy/.
func TestListedHosts_FromConfigMapToReady(t *testing.T) {
	r := newRig(t, Options{Hosts: []HostOptions{
		{Name: "by-address", Address: "10.1.42.1"},
		{Name: "by-name", DNSName: "instance.example.com", Username: "core"},
	}})
	ctx := newTimeoutContext(t, 5*time.Minute)
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(ctx); err != nil {
		t.Fatal(err)
	}
	operator, err := r.RunOperator()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the two hosts of the guide's example become Ready nodes", func(t *testing.T) {
		example, err := Example("windows-instances.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(ctx, example); err != nil {
			t.Fatal(err)
		}
		if err := r.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"by-address", "by-name"} {
			var node corev1.Node
			if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
				t.Fatal(err)
			}
			if node.Labels[v1alpha1.LabelOSID] != "Windows" || node.Labels[v1alpha1.LabelBYOH] != "true" {
				t.Errorf("node %s has labels %v", name, node.Labels)
			}
		}
	})
	//
	t.Run("an operator that is killed and started again touches no Ready host", func(t *testing.T) {
		connections := func() int {
			n := 0
			for _, h := range r.Hosts() {
				n += h.Machine().Journal().Count(fake.KindConnection)
			}
			return n
		}
		before := connections()
		operator.Kill()
		if _, err := r.RunOperator(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.AddHost(ctx, HostOptions{Name: "third"}); err != nil {
			t.Fatal(err)
		}
		if err := r.ListHosts(ctx); err != nil {
			t.Fatal(err)
		}
		// When the third host is Ready, the operator has reconciled the other hosts as well.
		if err := r.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		if after := connections() - r.Host("third").Machine().Journal().Count(fake.KindConnection); after != before {
			t.Errorf("%d connections to the Ready hosts before, %d after", before, after)
		}
	})
	//
	t.Run("a host that is no longer listed leaves the cluster", func(t *testing.T) {
		if err := r.ListHosts(ctx, "by-address", "third"); err != nil {
			t.Fatal(err)
		}
		if err := r.WaitGone(ctx, "by-name"); err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: "by-name"}, &corev1.Node{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("its Node: %v", err)
		}
	})
}
