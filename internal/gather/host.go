package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/fleet/status"
	"github.com/windows-machine-config/wmco/internal/gather/page"
	"github.com/windows-machine-config/wmco/internal/logprinter"
	"github.com/windows-machine-config/wmco/internal/nodelogs"
)

// kubeletTimeout is the timeout for the logs from a kubelet. The logs of a slower kubelet are read over SSH or
// not at all.
const kubeletTimeout = 20 * time.Second

// collectHost collects the data of one host, including hosts that never became nodes. It returns the host's section of
// the page, and whether the kubelet has served the logs.
func (g *gatherer) collectHost(ctx context.Context, f fleet.Fleet, i fleet.Instance) (shown page.Host, served bool) {
	folder := hostDirectory(i.Name)
	redactObject(i.Raw)
	g.writeYAML(folder+"windowsinstance.yaml", i.Raw)
	events, err := fleet.Events(ctx, g.reader, i)
	if err != nil {
		g.recordGap(folder+"status.txt", err)
	}
	var text bytes.Buffer
	if err := status.WriteOne(&text, f, i, events, g.now); err != nil {
		g.recordGap(folder+"status.txt", err)
	}
	g.write(folder+"status.txt", text.Bytes())
	shown = page.Host{Instance: i, Events: events, Files: []string{folder + "status.txt", folder + "windowsinstance.yaml"}}
	node := fleet.NodeName(i)
	if node == "" {
		return shown, false
	}
	g.writeObjects(ctx, folder+"node-events.yaml", newGroupVersionKind("", "v1", "Event"), client.InNamespace("default"),
		client.MatchingFields{"involvedObject.kind": "Node", "involvedObject.name": node})
	g.writeObjects(ctx, folder+"pods.yaml", newGroupVersionKind("", "v1", "Pod"), client.MatchingFields{"spec.nodeName": node})
	ctx, cancel := context.WithTimeout(ctx, min(g.timeout, kubeletTimeout))
	defer cancel()
	logs, served := g.serviceLogs(ctx, folder, node)
	shown.Files = append(shown.Files, logs...)
	return shown, served
}

// serviceLogs collects the end of each service's log. It returns the files, and whether the kubelet serves
// logs. A kubelet that does not respond is queried once.
func (g *gatherer) serviceLogs(ctx context.Context, folder, node string) (written []string, served bool) {
	files, err := g.logs(node)
	var services []string
	if err == nil {
		services, err = files.Services(ctx)
	}
	if err != nil {
		g.recordGap(folder+"logs", fmt.Errorf("the kubelet of node %s: %w", node, err))
		return nil, false
	}
	collected := 0
	for n, service := range services {
		if n == maxLogs || collected > maxLogBytes {
			g.recordGap(folder+"logs", fmt.Errorf("the kubelet of node %s serves logs of %d services, of which only %d were collected", node, len(services), n))
			break
		}
		file := folder + "logs/" + fileName(service) + ".log"
		if size, found := g.serviceLog(ctx, files, file, service); found {
			written, collected = append(written, file), collected+size
		}
	}
	return written, true
}

// serviceLog returns the size of a log, and reports whether the log exists.
func (g *gatherer) serviceLog(ctx context.Context, files nodelogs.Files, file, service string) (size int, found bool) {
	path, err := files.Current(ctx, service)
	if errors.Is(err, logprinter.ErrNotFound) {
		return 0, false
	}
	var part logprinter.Part
	if err == nil {
		part, err = files.Last(ctx, path, maxLogSize)
	}
	if err != nil {
		g.recordGap(file, err)
		return 0, false
	}
	g.write(file, part.Body)
	return len(part.Body), true
}

// readNodes reads the Nodes of the cluster: the reports of the kubelets show which hosts are unreachable.
func (g *gatherer) readNodes(ctx context.Context) map[string]corev1.Node {
	list := &corev1.NodeList{}
	if err := g.reader.List(ctx, list); err != nil {
		g.recordGap("the state of nodes in index.html", err)
	}
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes
}

// unhealthyInstances returns the names of the unreachable instances, and of the instances that are not Ready for
// another reason.
func (g *gatherer) unhealthyInstances(instances []fleet.Instance) (dead, others []string) {
	for _, i := range instances {
		var node *corev1.Node
		if read, known := g.nodes[fleet.NodeName(i)]; known {
			node = &read
		}
		switch health, _ := fleet.HealthOf(i, node); health {
		case fleet.Unreachable:
			dead = append(dead, i.Name)
		case fleet.NotReady:
			others = append(others, fmt.Sprintf("%s (%s)", i.Name, fleet.State(i)))
		}
	}
	return dead, others
}
