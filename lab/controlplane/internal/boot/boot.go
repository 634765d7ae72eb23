package boot

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/queuemetrics"
)

// poll is the interval between checks of a start condition. A short interval reduces the start time, but checks
// are part of the start's cost.
const poll = 50 * time.Millisecond

// ControlPlane is a running control plane. It ends with the process.
type ControlPlane struct {
	// Client has all rights.
	Client *rest.Config

	clientset kubernetes.Interface
	failed    chan error
}

// Start starts etcd and the API server. It returns as soon as the API server serves requests without RBAC (of
// system:masters). The controller manager and the scheduler start in the background; see
// [ControlPlane.WaitReady]. The components end with ctx, only the start ends with booting.
func Start(ctx, booting context.Context, c *Config, creds *Credentials) (*ControlPlane, error) {
	queuemetrics.Disable()
	etcd, err := startEtcd(booting, c)
	if err != nil {
		return nil, err
	}
	if err := storeDefinitions(booting, etcd, c.Definitions); err != nil {
		return nil, err
	}
	cp := &ControlPlane{Client: clientConfig(c, creds), failed: make(chan error, 4)}
	if cp.clientset, err = kubernetes.NewForConfig(cp.Client); err != nil {
		return nil, err
	}
	go func() { cp.failed <- fmt.Errorf("etcd ended: %w", <-etcd.Err()) }()
	cp.run("kube-apiserver", func() error { return runAPIServer(ctx, c, creds) })
	if err := cp.waitFor(booting, cp.serves); err != nil {
		return nil, fmt.Errorf("wait for the API server to serve: %w", err)
	}
	go cp.startClients(ctx, booting, c, creds)
	return cp, nil
}

// startClients starts the clients of the API server as soon as the default roles exist: a refused client
// retries only after a second.
func (cp *ControlPlane) startClients(ctx, booting context.Context, c *Config, creds *Credentials) {
	if err := cp.waitFor(booting, cp.hasRoles); err != nil {
		cp.failed <- fmt.Errorf("wait for the API server to make the default roles: %w", err)
		return
	}
	cp.run("kube-controller-manager", func() error { return runControllerManager(ctx, c, creds) })
	cp.run("kube-scheduler", func() error { return runScheduler(ctx, c, creds) })
}

// Failed returns a channel with the error of the component that ended first. No component should end.
func (cp *ControlPlane) Failed() <-chan error { return cp.failed }

// WaitReady waits until the API server reports ready and the default ServiceAccount exists.
func (cp *ControlPlane) WaitReady(ctx context.Context) error {
	if err := cp.waitFor(ctx, cp.ready); err != nil {
		return fmt.Errorf("wait for /readyz: %w", err)
	}
	if err := cp.waitFor(ctx, cp.hasDefaultServiceAccount); err != nil {
		return fmt.Errorf("wait for the default ServiceAccount, which the controller manager makes: %w", err)
	}
	return nil
}

func (cp *ControlPlane) run(component string, run func() error) {
	go func() {
		err := run()
		if err == nil {
			err = errors.New("it returned")
		}
		cp.failed <- fmt.Errorf("%s ended: %w", component, err)
	}()
}

// waitFor polls until the condition is true, a component fails or ctx is done. The error includes the last
// error of the condition.
func (cp *ControlPlane) waitFor(ctx context.Context, holds func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-cp.failed:
			return false, err
		default:
		}
		last = holds(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (cp *ControlPlane) serves(ctx context.Context) error {
	return cp.get(ctx, "/api/v1/namespaces/kube-system")
}

func (cp *ControlPlane) hasRoles(ctx context.Context) error {
	return cp.get(ctx, "/readyz/poststarthook/rbac/bootstrap-roles")
}

func (cp *ControlPlane) ready(ctx context.Context) error { return cp.get(ctx, "/readyz") }

func (cp *ControlPlane) get(ctx context.Context, path string) error {
	return cp.clientset.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Error()
}

func (cp *ControlPlane) hasDefaultServiceAccount(ctx context.Context) error {
	_, err := cp.clientset.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func clientConfig(c *Config, creds *Credentials) *rest.Config {
	return &rest.Config{
		Host: c.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: creds.Server.CertPEM, CertData: creds.Admin.CertPEM, KeyData: creds.Admin.KeyPEM,
		},
		QPS: -1,
	}
}
