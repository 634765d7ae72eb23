package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drainingFiles returns the files of Linux workers with settings that also drain Windows nodes when changed. A
// change of any other file, unit or SSH key of a MachineConfig drains no Windows node.
func drainingFiles() []string { return []string{kubeletConfigPath, "/etc/mco/proxy.env"} }

// readMachineConfigurations reports a nodeDisruptionPolicy that lets Linux nodes change such settings without a
// drain.
func (n *notices) readMachineConfigurations(ctx context.Context, reader client.Reader) error {
	list := &operatorv1.MachineConfigurationList{}
	if err := listOptional(ctx, reader, list, "MachineConfiguration"); err != nil {
		return err
	}
	for _, config := range byName(list.Items, func(c operatorv1.MachineConfiguration) string { return c.Name }) {
		var paths []string
		for _, file := range drainingFiles() {
			policy, found := closestPolicy(config.Spec.NodeDisruptionPolicy.Files, file)
			if found && !slices.ContainsFunc(policy.Actions, isDisruptive) && !slices.Contains(paths, policy.Path) {
				paths = append(paths, policy.Path)
			}
		}
		if len(paths) == 0 {
			continue
		}
		n.addNotice(subject{"MachineConfiguration " + config.Name, config.ResourceVersion}, "spec.nodeDisruptionPolicy.files",
			fmt.Sprintf("Windows nodes do not follow the policy for %s: they are drained when settings of the kubelet or the proxy change. "+
				"Set in a WindowsDisruptionPolicy when, and how many at once.", listNames(paths, maxNames)))
	}
	return nil
}

// closestPolicy returns the policy of a file: the policy with the longest path that is the file or a parent
// directory. Source: openshift/machine-config-operator, FindClosestFilePolicyPathMatch.
func closestPolicy(policies []operatorv1.NodeDisruptionPolicySpecFile, file string) (closest operatorv1.NodeDisruptionPolicySpecFile, found bool) {
	for _, policy := range policies {
		isAbove := strings.HasPrefix(file, strings.TrimSuffix(policy.Path, "/")+"/")
		if (policy.Path == file || isAbove) && len(policy.Path) > len(closest.Path) {
			closest, found = policy, true
		}
	}
	return closest, found
}

// isDisruptive reports whether an action evicts the pods of the node.
func isDisruptive(action operatorv1.NodeDisruptionPolicySpecAction) bool {
	return action.Type == operatorv1.DrainSpecAction || action.Type == operatorv1.RebootSpecAction
}
