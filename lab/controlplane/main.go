// Lab-controlplane is a Kubernetes control plane in one process: etcd, kube-apiserver, kube-controller-manager
// and kube-scheduler, for tests and for the demo. It is killed with its parent process, and only the directory
// remains.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/boot"
	"github.com/windows-machine-config/wmco/lab/controlplane/internal/install"
	"github.com/windows-machine-config/wmco/lab/controlplane/internal/pki"
	"github.com/windows-machine-config/wmco/lab/controlplane/openshift"
)

// bootLimit is the timeout of a start, which takes seconds on an idle machine.
const bootLimit = 2 * time.Minute

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "lab-controlplane:", err)
		os.Exit(1)
	}
}

// run boots the control plane and returns when a component fails.
func run(ctx context.Context) error {
	f := &flags{}
	if err := f.parse(os.Args[1:]); err != nil {
		return err
	}
	if err := dieWithParent(f.parent); err != nil {
		return err
	}
	config, err := f.config()
	if err != nil {
		return err
	}
	booting, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	// The end of the context would also stop the components, so that a context without end is passed.
	cp, err := f.start(ctx, booting, config)
	if err != nil {
		return err
	}
	if f.readyFile != "" {
		if err := pki.WriteFile(f.readyFile, []byte(config.URL()+"\n")); err != nil {
			return err
		}
	}
	return <-cp.Failed()
}

// start returns when the cluster is ready for use.
func (f *flags) start(ctx, booting context.Context, config *boot.Config) (*boot.ControlPlane, error) {
	creds, err := boot.NewCredentials(config)
	if err != nil {
		return nil, err
	}
	if err := f.writeKubeconfigs(config, creds); err != nil {
		return nil, err
	}
	cp, err := boot.Start(ctx, booting, config, creds)
	if err != nil {
		return nil, err
	}
	if f.profile == profileOpenShift {
		if err := f.installOpenShift(booting, config, creds, cp); err != nil {
			return nil, fmt.Errorf("install the profile %s: %w", f.profile, err)
		}
	}
	return cp, cp.WaitReady(booting)
}

func (f *flags) writeKubeconfigs(config *boot.Config, creds *boot.Credentials) error {
	if f.kubeconfig != "" {
		if err := creds.WriteKubeconfig(f.kubeconfig, config.URL(), creds.Admin); err != nil {
			return err
		}
	}
	if f.listenFDKubeconfig == "" {
		return nil
	}
	if config.Inherited == nil {
		return fmt.Errorf("--listen-fd-kubeconfig needs --listen-fd")
	}
	return creds.WriteKubeconfig(f.listenFDKubeconfig, "https://"+config.Inherited.Addr().String(), creds.Admin)
}

func (f *flags) installOpenShift(ctx context.Context, config *boot.Config, creds *boot.Credentials,
	cp *boot.ControlPlane) error {
	internal, err := f.internalURI(config)
	if err != nil {
		return err
	}
	objects, err := openshift.Objects(openshift.Cluster{
		Domain:                f.domain,
		Platform:              f.platform,
		APIServerURL:          fmt.Sprintf("https://api.%s:%d", f.domain, config.Port()),
		APIServerInternalURI:  internal.String(),
		APIServerInternalPort: internal.Port(),
		ServerCA:              string(creds.Server.CertPEM),
		KubeletClientCA:       string(creds.KubeletClientBundle),
		KubeletServingCA:      string(creds.CSRSigner.CertPEM),
	})
	if err != nil {
		return err
	}
	return install.Install(ctx, cp.Client, config.Definitions, objects)
}
