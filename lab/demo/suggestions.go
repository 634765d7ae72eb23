package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// formatSuggestions returns instructions for the user for another terminal.
func (d *demo) formatSuggestions() string {
	var b strings.Builder
	b.WriteString("\nIn another terminal, in this directory:\n\n")
	fmt.Fprintf(&b, "    export KUBECONFIG=%s\n", d.env.Cluster().ExternalKubeconfig)
	fmt.Fprintf(&b, "    export PATH=$PATH:%s\n", filepath.Dir(d.programs.plugin))
	for _, try := range d.suggestedCommands() {
		fmt.Fprintf(&b, "\n    %s\n", try.command)
		if try.reason != "" {
			fmt.Fprintf(&b, "        # %s\n", try.reason)
		}
	}
	b.WriteString("\nChanges are printed here. Ctrl-C ends the lab and leaves nothing behind.\n")
	return b.String()
}

// suggestedCommand is a command with its purpose.
type suggestedCommand struct{ command, reason string }

func (d *demo) suggestedCommands() []suggestedCommand {
	hosts := d.hostOptions()
	first, spare := entryOf(hosts[0]), entryOf(hosts[d.hosts])
	noContainer := "a Pod object: no container starts on a simulated host"
	if d.host == hostWine {
		noContainer = "a Pod object: no container starts under Wine"
	}
	tries := []suggestedCommand{
		{"kubectl get winst -A", "every host: address, node, version, status"},
		{"kubectl windows status", "progress, problem and next action of each host"},
		{"kubectl windows plan --all && kubectl windows diagnose " + first.address, "pending steps of all hosts, and the checks of one host, by the operator over SSH"},
		{"kubectl get nodes -L node.openshift.io/os_id,node.kubernetes.io/windows-build", ""},
		{"kubectl describe winst -A", "conditions, facts, events"},
		{"kubectl apply -f examples/windows-pod.yaml && kubectl wait --for=condition=Ready pod/windows-sample && kubectl logs windows-sample", noContainer},
		{"kubectl -n " + testenv.Namespace + " edit configmap windows-instances",
			fmt.Sprintf("add `%s: %s`: the host joins; remove %s: the host is restored", spare.address, spare.value, first.address)},
	}
	tries = append(tries, suggestedCommand{
		"kubectl annotate node -l " + v1alpha1.LabelBYOH + "=true " + v1alpha1.AnnotationRebootRequired +
			"= && kubectl get winst,windp -A",
		"the listed hosts are drained, restarted and verified, one after the other",
	})
	if d.machineSet != "" {
		tries = append(tries, d.machineCommands()...)
	}
	if d.host == hostWine {
		tries = append(tries, d.wineCommands(hosts[0])...)
	}
	return append(tries, d.prometheus.suggestedCommands()...)
}

// machineCommands returns commands for the MachineSet.
func (d *demo) machineCommands() []suggestedCommand {
	inNamespace := " -n " + machineAPI
	return []suggestedCommand{
		{"kubectl get machineset,machine" + inNamespace,
			"Windows and Linux Machines; the operator does not change Linux Machines"},
		{fmt.Sprintf("kubectl scale machineset %s%s --replicas=%d", d.machineSet, inNamespace, d.desiredMachines()+2),
			"two more nodes; with fewer replicas, nodes are drained and deleted"},
		{fmt.Sprintf("kubectl delete machine%s $(kubectl get machine%[1]s -l machine.openshift.io/os-id=Windows -o name | head -1 | cut -d/ -f2)", inNamespace), "the node is drained, the virtual machine is deleted, and the MachineSet creates another Machine"},
	}
}
