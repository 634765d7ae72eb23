// Package boot runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one process.
//
// Each runs from its own options and flags, exactly as its command would make them; only the
// command around them is left out, because their signal handlers and logging clash in one process.
package boot

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windows-machine-config/wmco/lab/controlplane/internal/pki"
)

// ServiceNetwork is the cluster's service network, the default of OpenShift.
const ServiceNetwork = "172.30.0.0/16"

// Config configures a control plane.
type Config struct {
	// Dir holds all data; it must exist, and be the working directory of the process.
	Dir string
	// Listener is where the API server listens, and calls itself.
	Listener net.Listener
	// Inherited is another listener that is served as well; nil is none.
	Inherited net.Listener
	// Hosts are further names and addresses that clients know the API server by.
	Hosts []string
	// AuditLog is the file that a line is written to for each request; "" is none.
	AuditLog string
	// AutoApproveRenewals lets the controller manager approve the CSRs with which nodes
	// renew their client certificates, where RBAC allows the node to.
	AutoApproveRenewals bool
	// ExternalSigner leaves the CSRs that were approved to somebody else to sign.
	ExternalSigner bool
	// NodeGracePeriod is how long a node may be silent until the controller manager takes it for unreachable; its default
	// when 0.
	NodeGracePeriod time.Duration
	// ExternalCloudProvider is set where an external cloud controller manager would run.
	ExternalCloudProvider bool
	// Definitions are the CustomResourceDefinitions that the API server finds when it starts.
	Definitions []*unstructured.Unstructured
	// AdmissionPlugins are enabled in addition to the defaults.
	AdmissionPlugins []string
}

// Credentials are the certificates and keys of one start.
type Credentials struct {
	*pki.Authorities
	// Admin belongs to system:masters.
	Admin pki.Pair

	serving, kubeletClient, proxyClient, controllerManager, scheduler pki.Pair
}

// Port returns the port that the API server listens on.
func (c *Config) Port() int { return c.Listener.Addr().(*net.TCPAddr).Port }

// URL returns the address of the API server, as seen from within the process's network namespace.
func (c *Config) URL() string { return "https://" + c.Listener.Addr().String() }

func (c *Config) path(name string) string { return filepath.Join(c.Dir, name) }

// NewCredentials reads or makes the authorities below c.Dir and issues new certificates to all components.
func NewCredentials(c *Config) (*Credentials, error) {
	authorities, err := pki.LoadOrCreate(c.path("pki"))
	if err != nil {
		return nil, err
	}
	creds := &Credentials{Authorities: authorities}
	for _, issue := range []struct {
		to      *pki.Pair
		ca      *pki.CA
		file    string
		request pki.Request
	}{
		{&creds.serving, authorities.Server, "kube-apiserver", pki.Request{CommonName: "kube-apiserver",
			Hosts: c.servingHosts()}},
		{&creds.kubeletClient, authorities.ToKubelet, "kubelet-client", pki.Request{CommonName: "system:kube-apiserver",
			Organization: []string{"system:masters"}}},
		{&creds.proxyClient, authorities.FrontProxy, "aggregator-client",
			pki.Request{CommonName: "system:openshift-aggregator"}},
		{&creds.Admin, authorities.Admin, "admin", pki.Request{CommonName: "system:admin",
			Organization: []string{"system:masters"}}},
		{&creds.controllerManager, authorities.Admin, "kube-controller-manager",
			pki.Request{CommonName: "system:kube-controller-manager"}},
		{&creds.scheduler, authorities.Admin, "kube-scheduler", pki.Request{CommonName: "system:kube-scheduler"}},
	} {
		if *issue.to, err = issue.ca.Issue(issue.file, issue.request); err != nil {
			return nil, err
		}
	}
	return creds, nil
}

func (c *Config) servingHosts() []string {
	hosts := []string{
		"127.0.0.1", "::1", "localhost", "172.30.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	for _, l := range []net.Listener{c.Listener, c.Inherited} {
		if l != nil {
			hosts = append(hosts, l.Addr().(*net.TCPAddr).IP.String())
		}
	}
	return append(hosts, c.Hosts...)
}

// writeKubeconfig writes the kubeconfig of a component and returns its path.
func (c *Config) writeKubeconfig(creds *Credentials, component string, client pki.Pair) (string, error) {
	path := c.path(component + ".kubeconfig")
	if err := creds.WriteKubeconfig(path, c.URL(), client); err != nil {
		return "", fmt.Errorf("%s: %w", component, err)
	}
	return path, nil
}

// flag forms --name=value.
func flag(name string, value any) string {
	switch v := value.(type) {
	case bool:
		return "--" + name + "=" + strconv.FormatBool(v)
	case int:
		return "--" + name + "=" + strconv.Itoa(v)
	default:
		return fmt.Sprintf("--%s=%s", name, value)
	}
}
