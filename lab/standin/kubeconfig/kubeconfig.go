// Package kubeconfig loads a kubeconfig from the drive of a simulated host for the programs of the host.
package kubeconfig

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// Dialer opens connections to the API server. A nil Dialer dials as the operating system does.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Load reads a kubeconfig from the machine's drive. Referenced files are also read from the drive. A client
// certificate below a mounted directory is used at its real path, so that rotations take effect. Proxies in the
// environment of the program are used, as client-go does.
func Load(machine node.Machine, environment map[string]string, path string, dial Dialer) (*rest.Config, error) {
	if path == "" {
		return nil, fmt.Errorf("no kubeconfig is given")
	}
	data, err := machine.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	file, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	for _, cluster := range file.Clusters {
		if cluster.CertificateAuthority == "" {
			continue
		}
		if cluster.CertificateAuthorityData, err = machine.ReadFile(cluster.CertificateAuthority); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: read the cluster's CA: %w", path, err)
		}
		cluster.CertificateAuthority = ""
	}
	for _, user := range file.AuthInfos {
		if err := resolveFile(machine, &user.ClientCertificate, &user.ClientCertificateData); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: client certificate: %w", path, err)
		}
		if err := resolveFile(machine, &user.ClientKey, &user.ClientKeyData); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: client key: %w", path, err)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	config.Dial, config.Proxy = dial, proxyOf(environment)
	return config, nil
}

// proxyOf returns the proxies of a Windows program's environment, where names are case-insensitive.
func proxyOf(environment map[string]string) func(*http.Request) (*url.URL, error) {
	variables := map[string]string{}
	for name, value := range environment {
		variables[strings.ToUpper(name)] = value
	}
	proxies := (&httpproxy.Config{HTTPProxy: variables["HTTP_PROXY"], HTTPSProxy: variables["HTTPS_PROXY"],
		NoProxy: variables["NO_PROXY"]}).ProxyFunc()
	return func(request *http.Request) (*url.URL, error) { return proxies(request.URL) }
}

// resolveFile replaces a Windows path by the real path behind it, or by the content.
func resolveFile(machine node.Machine, path *string, content *[]byte) error {
	if *path == "" {
		return nil
	}
	if err := machine.CheckExists(*path); err != nil {
		return err
	}
	// The real path of the directory and not of the file: the file is a link that a rotation redirects.
	if at := strings.LastIndexByte(*path, '\\'); at > 0 {
		if dir, ok := machine.RealPath((*path)[:at]); ok {
			*path = filepath.Join(dir, (*path)[at+1:])
			return nil
		}
	}
	data, err := machine.ReadFile(*path)
	if err != nil {
		return err
	}
	*path, *content = "", data
	return nil
}
