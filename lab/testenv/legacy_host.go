package testenv

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// LegacyOptions describe the configuration of a host by a legacy operator.
type LegacyOptions struct {
	Kind LegacyKind
	// Version is the operator's version. Default: a version of the kind.
	Version string
	// NodeName is the name of the Node. Default: the computer name in lower case.
	NodeName string
	// Pinned records the host's key on its Node, as operators did in the last months before version 12.
	Pinned bool
	// WithoutNode creates no Node, as if the Node had been deleted. Only for hosts with Docker: their kubelet
	// registers no Node.
	WithoutNode bool
}

const (
	// legacyPollInterval is the interval of checks for the cluster's part.
	legacyPollInterval = 100 * time.Millisecond
	// legacyNodeTimeout is the timeout of that wait.
	legacyNodeTimeout = 3 * time.Minute
)

// SeedLegacyHost makes a new host a legacy host with its node in service, and returns the Node. The namespace must
// exist. For the host of a Machine, the result is a legacy host from the Machine API.
func (r *Environment) SeedLegacyHost(ctx context.Context, h *Host, options LegacyOptions) (*corev1.Node, error) {
	options.Version = cmp.Or(options.Version, options.Kind.Version())
	options.NodeName = cmp.Or(options.NodeName, strings.ToLower(h.Machine().Name()))
	ctx, cancel := context.WithTimeoutCause(ctx, legacyNodeTimeout, errors.New("the older node is not Ready"))
	defer cancel()
	node, err := r.seedLegacyHost(ctx, h, options)
	if err != nil {
		return nil, fmt.Errorf("make %s a host of an older operator: %w", h.Options.Name,
			errors.Join(err, context.Cause(ctx)))
	}
	return node, nil
}

func (r *Environment) seedLegacyHost(ctx context.Context, h *Host, options LegacyOptions) (*corev1.Node, error) {
	m := h.Machine()
	if err := enableContainers(ctx, m); err != nil {
		return nil, err
	}
	idle, err := m.Drive().ReadFile(idleProgram)
	if err != nil {
		return nil, err
	}
	in := legacyInputs{
		node: options.NodeName, address: m.Addresses()[0], subnet: "10.132.9.0/24", server: r.Config.Host,
		namespace: r.Namespace(),
		authority: r.Config.CAData, idle: string(idle),
	}
	layout, err := options.Kind.layoutFor(in)
	if err != nil {
		return nil, err
	}
	if options.Kind.canRegisterNode() {
		if err := r.installLegacyCertificate(ctx, m, options.NodeName); err != nil {
			return nil, err
		}
	}
	if err := layout.write(ctx, m); err != nil {
		return nil, err
	}
	switch {
	case options.Kind.canRegisterNode():
		err = m.Host().Services.Start(ctx, "kubelet") // It registers the Node.
	case !options.WithoutNode:
		err = r.createLegacyNode(ctx, m, options.NodeName)
	}
	if err != nil {
		return nil, err
	}
	if options.WithoutNode {
		return nil, layout.start(ctx, m)
	}
	node, err := r.awaitLegacyNode(ctx, options.NodeName, func(node *corev1.Node) bool {
		return node.Annotations[v1alpha1.AnnotationPodSubnet] != ""
	})
	if err != nil {
		return nil, err
	}
	if options.Kind.canRegisterNode() {
		if err := r.approveLegacyServing(ctx, options.NodeName); err != nil {
			return nil, err
		}
	}
	if err := createLegacyNetworks(ctx, m, node.Annotations[v1alpha1.AnnotationPodSubnet]); err != nil {
		return nil, err
	}
	if err := layout.start(ctx, m); err != nil {
		return nil, err
	}
	if options.Kind == LegacyDocker {
		r.keepLegacyNode(m, options.NodeName)
	}
	if err := r.markLegacyNode(ctx, h, node, options); err != nil {
		return nil, err
	}
	return r.awaitLegacyNode(ctx, options.NodeName, isLegacyNodeReady)
}

// isLegacyNodeReady reports whether the Node is Ready and has no temporary taint that keeps pods off.
func isLegacyNodeReady(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			return false
		}
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// enableContainers enables the feature, with the required restart.
func enableContainers(ctx context.Context, m *fake.Machine) error {
	const feature = "Containers"
	state, err := m.Host().Features.State(ctx, feature)
	if err != nil || state == host.FeatureEnabled {
		return err
	}
	if err := m.Host().Features.Enable(ctx, feature); err != nil {
		return err
	}
	before := m.BootID()
	if err := m.Host().Power.Reboot(ctx, "the feature Containers"); err != nil {
		return err
	}
	return m.WaitFor(ctx, func(m *fake.Machine) bool { return m.IsRunning() && m.BootID() != before })
}

// write writes the layout to the host. Services are then configured but not started.
func (l legacyLayout) write(ctx context.Context, m *fake.Machine) error {
	for _, dir := range l.directories {
		if err := m.Drive().MkdirAll(dir); err != nil {
			return err
		}
	}
	for path, content := range l.files {
		if err := m.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]); err != nil {
			return err
		}
		if err := m.Drive().WriteFile(path, []byte(content)); err != nil {
			return err
		}
	}
	for link, target := range l.links {
		if err := m.Drive().Symlink(target, link); err != nil {
			return err
		}
	}
	for name, value := range l.variables {
		if err := m.Host().Environment.Set(ctx, name, value); err != nil {
			return err
		}
	}
	for _, config := range l.services {
		if err := m.Host().Services.Configure(ctx, config); err != nil {
			return fmt.Errorf("make service %s: %w", config.Name, err)
		}
	}
	return nil
}

// start starts all services.
func (l legacyLayout) start(ctx context.Context, m *fake.Machine) error {
	for _, service := range l.started {
		if err := m.Host().Services.Start(ctx, service); err != nil {
			return fmt.Errorf("start %s: %w", service, err)
		}
	}
	return nil
}

// createLegacyNetworks creates the networks of the hybrid overlay, and the endpoint of the script for kube-proxy.
func createLegacyNetworks(ctx context.Context, m *fake.Machine, subnet string) error {
	for _, network := range []host.HNSNetwork{
		{Name: "Base" + legacyNetwork, Type: "Overlay", Subnet: "100.64.0.0/30"},
		{Name: legacyNetwork, Type: "Overlay", Subnet: subnet},
	} {
		if err := m.CreateNetwork(network); err != nil {
			return fmt.Errorf("make HNS network %s: %w", network.Name, err)
		}
	}
	vip, err := m.Host().Networks.CreateEndpoint(ctx, legacyNetwork, "VIPEndpoint", "")
	if err != nil {
		return fmt.Errorf("make the source address of kube-proxy: %w", err)
	}
	if err := m.Host().Networks.AttachEndpoint(ctx, vip.Name); err != nil {
		return fmt.Errorf("give the host the source address of kube-proxy: %w", err)
	}
	return nil
}

// awaitLegacyNode waits until a Node meets the condition.
func (r *Environment) awaitLegacyNode(ctx context.Context, name string, condition func(*corev1.Node) bool) (*corev1.Node,
	error) {
	node := &corev1.Node{}
	err := wait.PollUntilContextCancel(ctx, legacyPollInterval, true, func(ctx context.Context) (bool, error) {
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		return err == nil && condition(node), client.IgnoreNotFound(err)
	})
	return node, err
}

// legacyUsername is an example of a user name encrypted with the SSH key by a legacy operator.
const legacyUsername = "wy4ECQMIVl3n2hJ0Yq/gJw5pXb8mQ1c7<wmcoMarker>Zk9kR0sXy2Fh0jQn4M3v<wmcoMarker>=x7Tz"

// markLegacyNode writes the final annotations of a legacy operator to the Node.
func (r *Environment) markLegacyNode(ctx context.Context, h *Host, node *corev1.Node, options LegacyOptions) error {
	before := node.DeepCopy()
	marks := map[string]string{
		v1alpha1.AnnotationVersion: options.Version, v1alpha1.AnnotationPubKeyHash: r.KeyHash(),
		v1alpha1.AnnotationUsername: legacyUsername,
	}
	if options.Kind == LegacyContainerd {
		marks[v1alpha1.AnnotationDesiredVersion] = options.Version
	}
	if options.Pinned {
		key, err := h.HostKey()
		if err != nil {
			return fmt.Errorf("read the host key: %w", err)
		}
		marks[v1alpha1.AnnotationHostKey],
			marks[v1alpha1.AnnotationHostKeyType] = base64.StdEncoding.EncodeToString(key.Marshal()), key.Type()
	}
	for name, value := range marks {
		node.Annotations[name] = value
	}
	node.Labels[v1alpha1.LabelWorker] = ""
	if h.MachineName() == "" {
		node.Labels[v1alpha1.LabelBYOH] = "true"
	}
	if err := r.Client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotate Node %s: %w", node.Name, err)
	}
	return nil
}
