package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubeconfig"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// proxyConfig is the part of KubeProxyConfiguration that the simulated kube-proxy reads.
type proxyConfig struct {
	APIVersion       string          `json:"apiVersion"`
	Kind             string          `json:"kind"`
	Mode             string          `json:"mode"`
	FeatureGates     map[string]bool `json:"featureGates"`
	ClientConnection struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"clientConnection"`
	Winkernel struct {
		NetworkName string `json:"networkName"`
		SourceVip   string `json:"sourceVip"`
		EnableDSR   bool   `json:"enableDSR"`
	} `json:"winkernel"`
}

// kubeProxy checks the preconditions of the real kube-proxy and then reports healthy.
func (t *table) kubeProxy(ctx context.Context, p *node.Process, e payload.Executable) int {
	config, service, err := proxyFlags(p)
	if err != nil {
		return reportFailure(p, "E kube-proxy: %v", err)
	}
	if !isServiceFlagValid(p, service) {
		return reportFailure(p, "kube-proxy runs as a service without --windows-service")
	}
	if _, err := kubeconfig.Load(p.Machine, p.Environ, config.ClientConnection.Kubeconfig, t.Dial); err != nil {
		return reportFailure(p, "E kube-proxy: %v", err)
	}
	if err := config.checkNetwork(ctx, p); err != nil {
		return reportFailure(p, "E kube-proxy: Error running ProxyServer: %v", err)
	}
	err = p.Machine.ServeLocal(10256, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"lastUpdated": %q,"currentTime": %[1]q,"nodeEligible": true}`,
			t.Clock.Now().Format("2006-01-02 15:04:05 -0700 MST"))
	}))
	if err != nil {
		return reportFailure(p, "E kube-proxy: %v", err)
	}
	fmt.Fprintf(p.Stderr, "I kube-proxy %s uses HNS network %s\r\n", e.Version, config.Winkernel.NetworkName)
	return awaitStop(ctx)
}

// proxyFlags parses the command line. As in the real kube-proxy, a configuration file overrides flags with the
// same meaning.
func proxyFlags(p *node.Process) (config proxyConfig, service bool, err error) {
	flags := pflag.NewFlagSet("kube-proxy", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("config", "", "")
	gates := flags.StringSlice("feature-gates", nil, "")
	flags.StringVar(&config.ClientConnection.Kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&config.Mode, "proxy-mode", "", "")
	flags.StringVar(&config.Winkernel.NetworkName, "network-name", "", "")
	flags.StringVar(&config.Winkernel.SourceVip, "source-vip", "", "")
	flags.BoolVar(&config.Winkernel.EnableDSR, "enable-dsr", false, "")
	flags.BoolVar(&service, "windows-service", false, "")
	for _, name := range strings.Fields(`bind-address cluster-cidr config-sync-period healthz-bind-address hostname-override kube-api-burst
		kube-api-content-type kube-api-qps log-flush-frequency logging-format master metrics-bind-address pod-bridge-interface
		root-hnsendpoint-name v vmodule windows-priorityclass`) {
		flags.String(name, "", "")
	}
	flags.Bool("bind-address-hard-fail", false, "")
	flags.Bool("forward-healthcheck-vip", false, "")
	if err := flags.Parse(p.Args); err != nil {
		return config, service, err
	}
	config.FeatureGates = map[string]bool{}
	for _, gate := range *gates {
		name, value, _ := strings.Cut(gate, "=")
		config.FeatureGates[name] = value == "true"
	}
	if *file == "" {
		return config, service, nil
	}
	config = proxyConfig{}
	data, err := p.Machine.ReadFile(*file)
	if err != nil {
		return config, service, fmt.Errorf("failed to load config: %w", err)
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return config, service, fmt.Errorf("failed to load config %s: %w", *file, err)
	}
	if config.Kind != "KubeProxyConfiguration" || config.APIVersion != "kubeproxy.config.k8s.io/v1alpha1" {
		return config, service, fmt.Errorf("failed to load config %s: no kind %q is registered for version %q", *file,
			config.Kind, config.APIVersion)
	}
	return config, service, nil
}

// checkNetwork returns the errors of the real proxier for an overlay network.
func (c proxyConfig) checkNetwork(ctx context.Context, p *node.Process) error {
	if c.Mode != "" && c.Mode != "kernelspace" {
		return fmt.Errorf("unknown proxy-mode %q: only kernelspace is there on Windows", c.Mode)
	}
	if c.Winkernel.NetworkName == "" {
		return errors.New("failed to get the HNS network name: networkName is not set")
	}
	networks, err := p.Host.Networks.Networks(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(networks, func(n host.HNSNetwork) bool { return n.Name == c.Winkernel.NetworkName })
	if i < 0 {
		return fmt.Errorf("could not find the HNS network %q: Network not found", c.Winkernel.NetworkName)
	}
	if !strings.EqualFold(networks[i].Type, "Overlay") {
		return nil
	}
	if c.Winkernel.SourceVip == "" {
		return errors.New("source-vip flag not set")
	}
	endpoints, err := p.Host.Networks.Endpoints(ctx)
	if err != nil {
		return err
	}
	i = slices.IndexFunc(endpoints, func(e host.HNSEndpoint) bool { return e.Address == c.Winkernel.SourceVip })
	if i < 0 {
		return fmt.Errorf("source VIP %s belongs to no HNS endpoint of this host", c.Winkernel.SourceVip)
	}
	// The real kube-proxy starts, but no response reaches the host: no port of the switch has the MAC address
	// of the endpoint.
	if !endpoints[i].Attached {
		return fmt.Errorf("HNS endpoint %s with the source VIP %s is not attached to this host", endpoints[i].Name,
			c.Winkernel.SourceVip)
	}
	return nil
}
