package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plugin/fleet"
	"github.com/windows-machine-config/wmco/internal/plugin/nodelogs"
	"github.com/windows-machine-config/wmco/internal/plugin/status"
)

// host collects what is known of one host: also of one that never became a node.
func (g *gatherer) host(ctx context.Context, f fleet.Fleet, i fleet.Instance) {
	folder := "hosts/" + fileName(i.Name) + "/"
	leaveOut(i.Raw)
	g.yaml(folder+"windowsinstance.yaml", i.Raw)
	events, err := fleet.Events(ctx, g.reader, i)
	if err != nil {
		g.lacks(folder+"status.txt", err)
	}
	var text bytes.Buffer
	if err := status.WriteOne(&text, f, i, events, g.now); err != nil {
		g.lacks(folder+"status.txt", err)
	}
	g.write(folder+"status.txt", text.Bytes())
	node := fleet.NodeName(i)
	if node == "" {
		return
	}
	g.objects(ctx, folder+"node-events.yaml", kind("", "v1", "Event"), client.InNamespace("default"),
		client.MatchingFields{"involvedObject.kind": "Node", "involvedObject.name": node})
	g.objects(ctx, folder+"pods.yaml", kind("", "v1", "Pod"), client.MatchingFields{"spec.nodeName": node})
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	g.serviceLogs(ctx, folder, node)
}

// serviceLogs collects the end of each service's log. A kubelet that does not answer is asked once.
func (g *gatherer) serviceLogs(ctx context.Context, folder, node string) {
	files, err := g.logs(node)
	if err == nil {
		var services []string
		if services, err = files.Services(ctx); err == nil {
			for _, service := range services {
				g.serviceLog(ctx, files, folder+"logs/"+fileName(service)+".log", service)
			}
			return
		}
	}
	g.lacks(folder+"logs", fmt.Errorf("the kubelet of node %s: %w", node, err))
}

func (g *gatherer) serviceLog(ctx context.Context, files nodelogs.Files, file, service string) {
	path, err := files.Current(ctx, service)
	if errors.Is(err, nodelogs.ErrNotThere) {
		return
	}
	var part nodelogs.Part
	if err == nil {
		part, err = files.Last(ctx, path, mostOfALog)
	}
	if err != nil {
		g.lacks(file, err)
		return
	}
	g.write(file, part.Body)
}

// troubled are the names of the instances that are not Ready.
func troubled(instances []fleet.Instance) []string {
	var names []string
	for _, i := range instances {
		if !fleet.IsTrue(i, v1alpha1.ConditionReady) {
			names = append(names, fmt.Sprintf("%s (%s)", i.Name, fleet.State(i)))
		}
	}
	return names
}
