package operator_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// probes starts operators of one lab, each with probes.
type probes struct {
	*testing.T
	env *testenv.Environment
}

// start starts an operator that competes for leadership, and returns the address of its probes.
func (p probes) start() (*testenv.Operator, string) {
	p.Helper()
	listener, err := (&net.ListenConfig{}).Listen(p.Context(), "tcp", "127.0.77.1:0") // used by no other program
	if err != nil {
		p.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		p.Fatal(err)
	}
	o, err := p.env.RunOperator(func(c *operator.Config) {
		c.LeaderElection, c.ProbeAddress = true, address
		c.Election.Retry = time.Second // a second operator becomes leader soon
	})
	if err != nil {
		p.Fatal(err)
	}
	return o, address
}

// waitForProbe waits until a probe succeeds.
func (p probes) waitForProbe(address, probe string) {
	p.Helper()
	waitUntil(p.T, "probe "+probe+" to succeed", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/%s", address, probe), nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil // the operator does not listen yet
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK && probe == "healthz" {
			p.Errorf("the operator is not alive: %s", body)
		}
		return response.StatusCode == http.StatusOK, err
	})
}

// waitForLeader waits until the Lease has a holder other than the given one, and returns the holder.
func (p probes) waitForLeader(other string) (holder string) {
	p.Helper()
	waitUntil(p.T, "there is a leader", func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		err := p.env.Client.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: "windows-machine-config-operator"},
			lease)
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		return holder != "" && holder != other, client.IgnoreNotFound(err)
	})
	return holder
}

// Only one of two operators works. The second is alive and ready, and becomes the leader within seconds after
// the end of the first. There is no private key during this test. R-013
func TestLeader_StandbyLeadsAfterLeaderStops(t *testing.T) {
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	p := probes{t, r}
	first, firstProbes := p.start()
	leader := p.waitForLeader("")
	p.waitForProbe(firstProbes, "healthz")
	p.waitForProbe(firstProbes, "readyz")
	second, secondProbes := p.start()
	p.waitForProbe(secondProbes, "healthz")
	p.waitForProbe(secondProbes, "readyz")

	const host = "10.1.42.7"
	if err := r.SetInstances(t.Context(), map[string]string{host: "username=Administrator"}); err != nil {
		t.Fatal(err)
	}
	awaitInstance(t, r.Client, hostlist.InstanceName(host))
	if now := p.waitForLeader(""); now != leader {
		t.Errorf("the leader is %s, it was %s", now, leader)
	}
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	if now := p.waitForLeader(leader); strings.HasPrefix(now, leader) {
		t.Errorf("the leader is still %s", now)
	}
	const next = "10.1.42.8"
	if err := r.SetInstances(t.Context(), map[string]string{host: "username=Administrator",
		next: "username=Administrator"}); err != nil {
		t.Fatal(err)
	}
	awaitInstance(t, r.Client, hostlist.InstanceName(next))
	if err := second.Stop(); err != nil {
		t.Error(err)
	}
}

// An operator without a readable payload for hosts is not ready.
func TestReadyz_NotReadyWithoutPayload(t *testing.T) {
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.InstallOperator(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	p := probes{t, r}
	o, address := p.start()
	p.waitForProbe(address, "readyz")
	removePayload(t, r.PayloadDir())
	waitUntil(t, "the operator to be not ready", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz?verbose", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode != http.StatusOK && strings.Contains(string(body), "[-]payload failed"), err
	})
	p.waitForProbe(address, "healthz") // A restart would not restore the payload.
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
}

// removePayload removes the manifest of a payload, like a volume that no longer exists.
func removePayload(t *testing.T, directory string) {
	t.Helper()
	if err := os.Remove(filepath.Join(directory, "manifest.json")); err != nil {
		t.Fatal(err)
	}
}
