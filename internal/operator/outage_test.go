package operator_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// A minute of this test is six seconds: the durations of leader election are a tenth of the defaults.
const (
	minute  = 6 * time.Second
	scale   = time.Minute / minute
	session = 2 * minute // until the host opens a session
)

// An outage of the API server for a minute ends neither the operator nor its work on a host.
func TestOperator_ContinuesDuringAPIServerOutage(t *testing.T) {
	r, err := testenv.New(t.Context(), testenv.Options{Cluster: lab.Cluster(t), Hosts: testenv.Hosts(1)})
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
	host := r.Hosts()[0]
	t.Cleanup(host.Inject(winhost.SlowSession, winhost.Parameters{Duration: session}))
	var away atomic.Bool
	o, err := r.RunOperator(func(c *operator.Config) {
		usual := operator.Election{}.WithDefaults()
		c.LeaderElection = true
		c.Election = operator.Election{Lease: usual.Lease / scale, RenewDeadline: usual.RenewDeadline / scale,
			Retry: usual.Retry / scale}
		c.RESTConfig.Wrap(func(api http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if away.Load() {
					return nil, errors.New("connection refused")
				}
				return api.RoundTrip(request)
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.ListHosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the host is connected to", func(ctx context.Context) (bool, error) {
		instance, err := r.Instance(ctx, host.Options.Name)
		return err == nil && instance != nil && instance.Status.HostKey != nil, nil
	})

	away.Store(true)
	select {
	case <-time.After(minute): // the outage itself
	case <-o.Done():
		t.Fatal("the operator has ended while the API server was away")
	}
	away.Store(false)
	back := time.Now()
	waitUntil(t, "the Lease is renewed", func(ctx context.Context) (bool, error) {
		select {
		case <-o.Done():
			t.Fatal("the operator has ended after the API server was away")
		default:
		}
		lease := &coordinationv1.Lease{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: testenv.Namespace, Name: "windows-machine-config-operator"}, lease)
		return err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(back), err
	})
	journal := host.Machine().Journal()
	waitUntil(t, "the session is opened", func(context.Context) (bool, error) { return journal.Count(fake.KindSFTP) > 0, nil })
	if connections := journal.Count(fake.KindConnection); connections != 1 {
		t.Errorf("the host was connected to %d times", connections)
	}
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
}
