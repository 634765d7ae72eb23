package standin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/kubeconfig"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// uninitializedTaint is the taint of nodes that no cloud controller has initialized.
const uninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// cloudNodeManager initializes its node with the rights of its own identity. R-088
func (t *table) cloudNodeManager(ctx context.Context, p *node.Process, e payload.Executable) int {
	flags := flag.NewFlagSet("azure-cloud-node-manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	service := flags.Bool("windows-service", false, "")
	node := flags.String("node-name", "", "")
	config := flags.String("kubeconfig", "", "")
	flags.Bool("wait-routes", false, "")
	flags.Bool("use-instance-metadata", true, "")
	for _, name := range strings.Fields("v vmodule cloud-config node-status-update-frequency master") {
		flags.String(name, "", "")
	}
	if err := flags.Parse(p.Args); err != nil {
		return reportFailure(p, "cloud-node-manager: %v", err)
	}
	if !isServiceFlagValid(p, *service) {
		return reportFailure(p, "cloud-node-manager runs as a service without --windows-service")
	}
	if *node == "" {
		return reportFailure(p, "cloud-node-manager: node name is not set")
	}
	m := cloudNode{t: t, p: p, node: *node, kubeconfig: *config, version: e.Version}
	if _, err := m.newClient(); err != nil {
		return reportFailure(p, "cloud-node-manager: %v", err)
	}
	if t.CloudWorks != nil {
		select {
		case <-t.CloudWorks:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		if err := m.watchNode(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(p.Stderr, "E %v\r\n", err)
		}
		t.pauseFor(ctx, watchRetryDelay)
	}
	return 0
}

// pauseFor waits for a duration or until ctx is done.
func (t *table) pauseFor(ctx context.Context, d time.Duration) {
	timer := t.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// cloudNode is the state of cloud-node-manager.
type cloudNode struct {
	t                         *table
	p                         *node.Process
	node, kubeconfig, version string
}

// newClient returns a client with the current certificate on the drive, because client-go also reloads renewed
// certificates.
func (m *cloudNode) newClient() (kubernetes.Interface, error) {
	config, err := kubeconfig.Load(m.p.Machine, m.p.Environ, m.kubeconfig, m.t.Dial)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "azure-cloud-node-manager/" + m.version + " lab stand-in"
	return kubernetes.NewForConfig(config)
}

// watchNode watches the node until the watch ends.
func (m *cloudNode) watchNode(ctx context.Context) error {
	client, err := m.newClient()
	if err != nil {
		return err
	}
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", m.node).String()}
	list, err := client.CoreV1().Nodes().List(ctx, selector)
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range list.Items {
		if err := m.initializeNode(ctx, client, &list.Items[i]); err != nil {
			return err
		}
	}
	selector.ResourceVersion = list.ResourceVersion
	watch, err := client.CoreV1().Nodes().Watch(ctx, selector)
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if node, ok := event.Object.(*corev1.Node); ok {
			if err := m.initializeNode(ctx, client, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// initializeNode sets the node fields that the cloud provides and removes the taint. Source:
// pkg/nodemanager/nodemanager.go of cloud-provider-azure, initializeNode and updateNodeAddress.
func (m *cloudNode) initializeNode(ctx context.Context, client kubernetes.Interface, seen *corev1.Node) error {
	isUninitialized := func(t corev1.Taint) bool { return t.Key == uninitializedTaint }
	if !slices.ContainsFunc(seen.Spec.Taints, isUninitialized) {
		return nil
	}
	address := ""
	if addresses := m.p.Machine.Addresses(); len(addresses) > 0 {
		address = addresses[0]
	}
	patch := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"Hostname","address":%q}]}}`,
		address, m.node)
	_, err := client.CoreV1().Nodes().Patch(ctx, m.node, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("set the addresses of node %s: %w", m.node, err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, m.node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Spec.ProviderID == "" {
			node.Spec.ProviderID = m.t.ProviderID(m.node, address)
		}
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		maps.Copy(node.Labels, azureLabels(m.t.Zone(address)))
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isUninitialized)
		_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("initialize node %s: %w", m.node, err)
	}
	fmt.Fprintf(m.p.Stderr, "I Successfully initialized node %s with cloud provider\r\n", m.node)
	return nil
}

// azureLabels returns the labels from the metadata service of Azure for a virtual machine. Without a zone, the
// zone label is the number of the fault domain. Source: pkg/provider/azure_zones.go of cloud-provider-azure,
// GetZone.
func azureLabels(zone string) map[string]string {
	const region = "eastus"
	zoneLabel := "0"
	if zone != "" {
		zoneLabel = region + "-" + zone
	}
	return map[string]string{
		corev1.LabelInstanceTypeStable: "Standard_D2s_v3", corev1.LabelTopologyRegion: region,
		corev1.LabelTopologyZone: zoneLabel,
	}
}

// azureProviderID returns the ID of a virtual machine that the lab's cloud does not know.
func azureProviderID(name, _ string) string {
	return "azure:///subscriptions/00000000-0000-0000-0000-000000000002/resourceGroups/lab-rg/providers/Microsoft.Compute/virtualMachines/" + name
}
