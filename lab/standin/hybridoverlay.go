package standin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubeconfig"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

const (
	baseNetwork       = "BaseOVNKubernetesHybridOverlayNetwork"
	overlayNetwork    = "OVNKubernetesHybridOverlayNetwork"
	subnetAnnotation  = "k8s.ovn.org/hybrid-overlay-node-subnet"
	gatewayAnnotation = "k8s.ovn.org/hybrid-overlay-distributed-router-gateway-mac"

	watchRetryDelay = 2 * time.Second
)

// hybridOverlay creates the HNS networks for the pod subnet that the cluster network assigns to the node. R-089
func (t *table) hybridOverlay(ctx context.Context, p *node.Process, e payload.Executable) int {
	flags := flag.NewFlagSet("hybrid-overlay-node", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	node := flags.String("node", "", "")
	config := flags.String("k8s-kubeconfig", "", "")
	logPath := flags.String("logfile", "", "")
	service := flags.Bool("windows-service", false, "")
	identity := &ovnIdentity{p: p, dial: t.Dial}
	flags.StringVar(&identity.bootstrap, "bootstrap-kubeconfig", "", "")
	flags.StringVar(&identity.directory, "cert-dir", "", "")
	flags.DurationVar(&identity.validity, "cert-duration", 24*time.Hour, "")
	mtu := flags.Int("mtu", 1400, "")
	for _, name := range strings.Fields(`cluster-subnets hybrid-overlay-cluster-subnets hybrid-overlay-vxlan-port k8s-apiserver k8s-cacert
		k8s-token logfile-maxage logfile-maxbackups logfile-maxsize loglevel nodeIP no-hostsubnet-nodes k8s-service-cidrs`) {
		flags.String(name, "", "")
	}
	flags.Bool("enable-hybrid-overlay", false, "")
	if err := flags.Parse(p.Args); err != nil {
		return reportFailure(p, "hybrid-overlay-node: %v", err)
	}
	if err := logTo(p, *logPath); err != nil {
		return reportFailure(p, "hybrid-overlay-node: %v", err)
	}
	if !isServiceFlagValid(p, *service) {
		return reportFailure(p, "hybrid-overlay-node runs as a service without --windows-service")
	}
	if *node == "" {
		return reportFailure(p, "missing node name; use the 'node' flag to provide one")
	}
	if *mtu < 576 || *mtu > 65535 {
		return reportFailure(p, "invalid MTU %d", *mtu)
	}
	restConfig, stop, err := t.overlayIdentity(ctx, p, *config, *node, identity)
	if err != nil {
		return reportFailure(p, "%v", err)
	}
	defer stop()
	restConfig.UserAgent = "hybrid-overlay-node/" + e.Version + " lab stand-in"
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return reportFailure(p, "%v", err)
	}
	o := overlay{t: t, p: p, client: client, node: *node}
	o.run(ctx)
	return 0
}

// overlayIdentity returns a dedicated OVN-Kubernetes identity if the command line contains a bootstrap
// kubeconfig; otherwise the identity of the kubeconfig.
func (t *table) overlayIdentity(ctx context.Context, p *node.Process, config, name string,
	id *ovnIdentity) (*rest.Config, func(), error) {
	if id.bootstrap == "" {
		loaded, err := kubeconfig.Load(p.Machine, p.Environ, config, t.Dial)
		return loaded, func() {}, err
	}
	if id.directory == "" {
		return nil, nil, errors.New("cert-dir must be set together with bootstrap-kubeconfig")
	}
	id.node = name
	return id.start(ctx)
}

type overlay struct {
	t      *table
	p      *node.Process
	client kubernetes.Interface
	node   string
}

// run watches the node's annotation until ctx is done.
func (o *overlay) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.watchNode(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(o.p.Stderr, "E %v\r\n", err)
		}
		o.t.pauseFor(ctx, watchRetryDelay)
	}
}

// watchNode watches the node until the watch ends.
func (o *overlay) watchNode(ctx context.Context) error {
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.node).String()}
	list, err := o.client.CoreV1().Nodes().List(ctx, selector)
	if err != nil {
		return fmt.Errorf("get node %s: %w", o.node, err)
	}
	for i := range list.Items {
		if err := o.syncNetworks(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	selector.ResourceVersion = list.ResourceVersion
	watch, err := o.client.CoreV1().Nodes().Watch(ctx, selector)
	if err != nil {
		return fmt.Errorf("watch node %s: %w", o.node, err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if node, ok := event.Object.(*corev1.Node); ok {
			if err := o.syncNetworks(ctx, node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *overlay) syncNetworks(ctx context.Context, node *corev1.Node) error {
	subnet := node.Annotations[subnetAnnotation]
	if subnet == "" {
		return nil
	}
	if _, _, err := net.ParseCIDR(subnet); err != nil {
		return fmt.Errorf("annotation %s of node %s: %w", subnetAnnotation, o.node, err)
	}
	for _, network := range []host.HNSNetwork{
		{Name: baseNetwork, Type: "Overlay", Subnet: "100.64.0.0/30"},
		{Name: overlayNetwork, Type: "Overlay", Subnet: subnet},
	} {
		if err := o.ensureNetwork(ctx, network); err != nil {
			return fmt.Errorf("HNS network %s: %w", network.Name, err)
		}
	}
	if node.Annotations[gatewayAnnotation] != "" {
		return nil
	}
	// The real program announces the address of the network's gateway, the destination of other nodes.
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, gatewayAnnotation, gatewayMAC(o.p.Machine))
	_, err := o.client.CoreV1().Nodes().Patch(ctx, o.node, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("annotate node %s: %w", o.node, err)
	}
	return nil
}

// ensureNetwork creates the network, and recreates it if the subnet differs.
func (o *overlay) ensureNetwork(ctx context.Context, desired host.HNSNetwork) error {
	networks, err := o.p.Host.Networks.Networks(ctx)
	if err != nil {
		return err
	}
	for _, network := range networks {
		if network.Name != desired.Name {
			continue
		}
		if network.Type == desired.Type && network.Subnet == desired.Subnet {
			return nil
		}
		if err := o.p.Host.Networks.DeleteNetwork(ctx, network.Name); err != nil && !errors.Is(err, host.ErrNotExist) {
			return err
		}
	}
	fmt.Fprintf(o.p.Stderr, "I create HNS network %s with subnet %s\r\n", desired.Name, desired.Subnet)
	return o.p.Machine.CreateNetwork(ctx, desired)
}

// gatewayMAC returns the address that Windows assigns to the gateway of an overlay network, derived from the
// IPv4 address of the host.
func gatewayMAC(machine node.Machine) string {
	ip := net.IPv4(127, 0, 0, 1)
	if addresses := machine.Addresses(); len(addresses) > 0 {
		ip = net.ParseIP(addresses[0])
	}
	v4 := ip.To4()
	if v4 == nil {
		v4 = net.IPv4(127, 0, 0, 1).To4()
	}
	return net.HardwareAddr{0x00, 0x15, v4[0], v4[1], v4[2], v4[3]}.String()
}
