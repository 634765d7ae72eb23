package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/boot"
	"github.com/windows-machine-config/wmco/lab/controlplane/openshift"
)

const (
	profilePlain     = "plain"
	profileOpenShift = "openshift"
)

type flags struct {
	dir, kubeconfig, readyFile, auditLog string
	listen                               string
	listenFD                             int
	listenFDKubeconfig                   string
	profile, platform, domain, apiIntURL string
	externalSigner, noRenewalApproval    bool
	nodeGracePeriod                      time.Duration
	parent                               int
}

func (f *flags) parse(args []string) error {
	set := pflag.NewFlagSet("lab-controlplane", pflag.ContinueOnError)
	set.StringVar(&f.dir, "dir", "",
		"directory for data, certificates and logs; made when missing, used again when there (required)")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "file to write the administrator's kubeconfig to")
	set.StringVar(&f.readyFile, "ready-file", "", "file to write, with the API server's URL, when everything is ready")
	set.StringVar(&f.auditLog, "audit-log", "", "file to write a line of JSON to for each request that was answered")
	set.StringVar(&f.listen, "listen", "127.0.0.1:0", "address for the API server to listen on; port 0 is a free one")
	set.IntVar(&f.listenFD, "listen-fd", 0,
		"file descriptor of an inherited, listening TCP socket to serve the API on as well, from another network namespace perhaps")
	set.StringVar(&f.listenFDKubeconfig, "listen-fd-kubeconfig", "",
		"file to write the administrator's kubeconfig for the address of --listen-fd to")
	set.StringVar(&f.profile, "profile", profilePlain,
		"plain, or openshift: with the definitions and objects of an OpenShift cluster")
	set.StringVar(&f.platform, "platform", "None",
		"platform of the OpenShift cluster: None, AWS, Azure, GCP, Nutanix or VSphere")
	set.StringVar(&f.domain, "domain", "lab.example.com", "name and base domain of the OpenShift cluster")
	set.StringVar(&f.apiIntURL, "api-int-url", "",
		"URL at which nodes reach the API server; the listener's port is added when it has none (default https://api-int.<domain>)")
	set.BoolVar(&f.externalSigner, "external-signer", false,
		"leave the certificate signing requests that were approved to somebody else to sign")
	set.BoolVar(&f.noRenewalApproval, "no-renewal-approval", false,
		"have the controller manager approve no renewals of nodes, which it does with the profile openshift")
	set.DurationVar(&f.nodeGracePeriod, "node-grace-period", 0,
		"how long a node may be silent until the controller manager takes it for unreachable (default: its own)")
	set.IntVar(&f.parent, "parent", 0,
		"process id of the parent, which this process is killed with (default: the present parent)")
	if err := set.Parse(args); err != nil {
		return err
	}
	switch {
	case f.dir == "":
		return errors.New("--dir is required")
	case f.profile != profilePlain && f.profile != profileOpenShift:
		return fmt.Errorf("--profile %q is neither %s nor %s", f.profile, profilePlain, profileOpenShift)
	}
	return openshift.ValidatePlatform(f.platform)
}

// config creates the directory, opens the listeners and changes into the directory.
func (f *flags) config() (*boot.Config, error) {
	for _, path := range []*string{&f.dir, &f.kubeconfig, &f.readyFile, &f.auditLog, &f.listenFDKubeconfig} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make --dir: %w", err)
	}
	if err := os.Chdir(f.dir); err != nil {
		return nil, fmt.Errorf("change to --dir: %w", err)
	}
	config := &boot.Config{Dir: f.dir, AuditLog: f.auditLog, ExternalSigner: f.externalSigner,
		NodeGracePeriod: f.nodeGracePeriod}
	if err := f.openListeners(config); err != nil {
		return nil, err
	}
	return config, f.applyProfile(config)
}

func (f *flags) openListeners(config *boot.Config) error {
	var err error
	if config.Listener, err = listen(f.listen, portWait); err != nil {
		return fmt.Errorf("listen for the API server: %w", err)
	}
	if f.listenFD == 0 {
		return nil
	}
	file := os.NewFile(uintptr(f.listenFD), "listen-fd")
	defer file.Close() // FileListener duplicates the descriptor
	if config.Inherited, err = net.FileListener(file); err != nil {
		return fmt.Errorf("--listen-fd %d is no listening socket: %w", f.listenFD, err)
	}
	if _, ok := config.Inherited.Addr().(*net.TCPAddr); !ok {
		return fmt.Errorf("--listen-fd %d listens on %s, which is not TCP", f.listenFD, config.Inherited.Addr())
	}
	return nil
}

// portWait is the timeout for a listening port that is in use.
const portWait = 30 * time.Second

// listen waits for a port that is in use: between the end of a control plane and its next start at the same
// address, any program may receive the port for a connection.
func listen(address string, limit time.Duration) (net.Listener, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		listener, err := net.Listen("tcp", address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
	}
}

func (f *flags) applyProfile(config *boot.Config) error {
	config.Hosts = []string{"api." + f.domain, "api-int." + f.domain}
	if f.profile != profileOpenShift {
		return nil
	}
	internal, err := f.internalURI(config)
	if err != nil {
		return err
	}
	config.Hosts = append(config.Hosts, internal.Hostname())
	config.AutoApproveRenewals = !f.noRenewalApproval
	config.ExternalCloudProvider = openshift.ExternalCloudProvider(f.platform)
	if config.Definitions, err = openshift.CRDs(); err != nil {
		return err
	}
	config.AdmissionPlugins = []string{"OwnerReferencesPermissionEnforcement"}
	return nil
}

// internalURI returns the URL of the API server for nodes.
func (f *flags) internalURI(config *boot.Config) (*url.URL, error) {
	raw := f.apiIntURL
	if raw == "" {
		raw = "https://api-int." + f.domain
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("--api-int-url: %w", err)
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("--api-int-url %q is not of the form https://host or https://host:port", raw)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(config.Port()))
	}
	return u, nil
}
