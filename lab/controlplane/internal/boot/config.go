// Package boot runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one process.
//
// Each component runs with the same options and flags that its command would create. The commands themselves
// are omitted, because signal handlers and logging of several commands conflict in one process.
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
	// Dir contains all data. It must exist and be the working directory of the process.
	Dir string
	// Listener is the listener of the API server, and its address the advertised address.
	Listener net.Listener
	// Inherited is an additional listener; nil for none.
	Inherited net.Listener
	// Hosts are additional names and addresses of the API server for clients.
	Hosts []string
	// AuditLog is the file that receives a line for each request; "" for none.
	AuditLog string
	// AutoApproveRenewals enables the controller manager to approve CSRs of nodes for client certificate
	// renewals, if RBAC allows the renewal.
	AutoApproveRenewals bool
	// ExternalSigner leaves the signing of approved CSRs to another client.
	ExternalSigner bool
	// NodeGracePeriod is the time without a heartbeat after which the controller manager marks a node as
	// unreachable; the default of the controller manager when 0.
	NodeGracePeriod time.Duration
	// ExternalCloudProvider is true if an external cloud controller manager would run.
	ExternalCloudProvider bool
	// Definitions are the CustomResourceDefinitions in etcd when the API server starts.
	Definitions []*unstructured.Unstructured
	// AdmissionPlugins are enabled in addition to the defaults.
	AdmissionPlugins []string
}

// Credentials contains the certificates and keys of one start.
type Credentials struct {
	*pki.Authorities
	// Admin belongs to system:masters.
	Admin pki.Pair

	serving, kubeletClient, proxyClient, controllerManager, scheduler pki.Pair
}

// Port returns the listening port of the API server.
func (c *Config) Port() int { return c.Listener.Addr().(*net.TCPAddr).Port }

// URL returns the URL of the API server within the network namespace of the process.
func (c *Config) URL() string { return "https://" + c.Listener.Addr().String() }

func (c *Config) path(name string) string { return filepath.Join(c.Dir, name) }

// NewCredentials loads or creates the authorities below c.Dir and issues new certificates for all components.
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

// flag returns --name=value.
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
