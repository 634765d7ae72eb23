package machinesets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/machineset"
)

// expectGuideText checks that a guide contains the texts, in order.
func expectGuideText(t *testing.T, guide string, texts ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", guide))
	if err != nil {
		t.Fatal(err)
	}
	onOneLine := func(text string) string { // prose is wrapped anywhere, and commands after a backslash
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "\\\n", " ")), " ")
	}
	rest := onOneLine(string(data))
	for _, text := range texts {
		_, after, found := strings.Cut(rest, onOneLine(text))
		if !found {
			t.Errorf("docs/%s does not say, or not in this place: %s", guide, text)
			continue
		}
		rest = after
	}
}

func TestGuides(t *testing.T) {
	//
	t.Run("what must be there before", func(t *testing.T) {
		expectGuideText(t, "machinesets.md", "OVN-Kubernetes with hybrid networking", "settings.md#hybrid-networking", "support.md",
			"cluster administrator", "`oc`",
			"should not be the one that the cluster was installed with", "worker and infrastructure Machines only")
	})
	t.Run("every flag", func(t *testing.T) {
		for _, c := range New(&cmdutil.Access{}).Commands() {
			c.Flags().VisitAll(func(flag *pflag.Flag) {
				if flag.Name != "help" {
					expectGuideText(t, "machinesets.md", "| `--"+flag.Name)
				}
			})
		}
	})
	//
	t.Run("the way by hand", func(t *testing.T) {
		expectGuideText(t, "machinesets.md", `oc get -o jsonpath='{.status.infrastructureName}{"\n"}' infrastructure cluster`,
			"oc get machinesets -n openshift-machine-api",
			"-o yaml", "oc create -f", "oc get machinesets -n openshift-machine-api", "DESIRED, CURRENT, READY and AVAILABLE")
	})
	//
	t.Run("the commands that list Amazon's images", func(t *testing.T) {
		expectGuideText(t, "machinesets.md", machineset.AMICommand("<region>", "2022"), machineset.AMICommand("<region>", "2019"))
	})
	//
	t.Run("rules", func(t *testing.T) {
		expectGuideText(t, "machinesets.md", "`kubernetes.io/cluster/<infrastructure_id>: owned`", "9 characters at most",
			"ControlPlaneMachineSet")
	})
	//
	t.Run("the golden image, in its order", func(t *testing.T) {
		expectGuideText(t, "vsphere.md", "KB5012637", "hardware version", "does not make it larger",
			"have the [answer file](#the-template) extend it", "`ExtendOSPartition`", "VMware Tools, version 11.0.6",
			"if it has that group already, add the second line below the group's name",
			"\n       [guestinfo]\n       exclude-nics=\n", "ipconfig",
			"Get-Service -Name VMTools | Select Status, StartType", "OpenSSH Server", "administrators_authorized_keys",
			`New-NetFirewallRule -DisplayName "ContainerLogsPort" -LocalPort 10250 -Enabled True -Direction Inbound -Protocol TCP -Action Allow -EdgeTraversalPolicy Allow`,
			"Clone", "must not be used as it is", "`ComputerName`", "`AutoLogon` stays `false`", "`MyPassword` is replaced",
			`Stop-Service -Name sshd`, `Remove-Item -Path C:\ProgramData\ssh\ssh_host_*`,
			"The number of runs on one image is limited", `sysprep.exe /generalize /oobe /shutdown /unattend:<`, "Do not start it again", "Convert it to a template", "unique", "stays powered off",
			"`api-int.<cluster>.<domain>`", "full path")
	})
	//
	t.Run("what a template is to a MachineSet", func(t *testing.T) {
		expectGuideText(t, "machinesets.md", "full path of a template", "network comes from the Linux workers",
			"`diskGiB` does not make the partition in the template larger")
	})
	//
	t.Run("what listed hosts need", func(t *testing.T) {
		expectGuideText(t, "byoh.md", "since release 3.1 of the operator, on OpenShift 4.8;",
			"**The network** of the cluster's Linux workers", "`api-int.<cluster>.<domain>`",
			"vsphere.md#the-name-of-the-api-server", "`kubernetes.io/cluster/<infrastructure_id>`", "`owned` or `shared`")
		expectGuideText(t, "conditions.md", "A host must be in the network of the cluster's Linux workers.", "the reason is `APIServerUnreachable`",
			"whose pods reach no Service. The operator does not check that")
	})
	//
	t.Run("the README", func(t *testing.T) {
		expectGuideText(t, "../README.md", "oc create secret generic cloud-private-key --from-file=private-key.pem=", "docs/machinesets.md#a-machineset",
			"ten minutes", "newer release", "docs/upgrades.md", "docs/architecture.md", "HACKING.md", "CONTRIBUTING.md")
		expectGuideText(t, "machinesets.md", "`<infrastructure_id>`, `<zone>`", "`<vm_network_name>`", "`<windows_vm_template_name>`", "`<vcenter_datacenter_name>`",
			"`<vcenter_datastore_name>`", "`<vcenter_vm_folder_path>`", "`<vcenter_server_ip>`", "9 characters at most", "`machine.openshift.io/os-id: Windows`",
			"`machine.openshift.io/cluster-api-cluster`", "`machine.openshift.io/cluster-api-machineset`",
			"`machine.openshift.io/cluster-api-machine-role: worker`", "`machine.openshift.io/cluster-api-machine-type: worker`",
			"`node-role.kubernetes.io/worker: \"\"`", "is not marked as a worker")
	})
	//
	t.Run("other ways to scale, and Machines that no MachineSet manages", func(t *testing.T) {
		expectGuideText(t, "machinesets.md", "`<role>`", "availability set of the workers", "**infrastructure MachineSet**", "`node-role.kubernetes.io/infra: \"\"`",
			"oc edit machineset <name>", "oc apply -f replicas.yaml", "kind: MachineSet", "  replicas: 3", "A MachineSet for compute Machines cannot manage them")
	})
	t.Run("telemetry", func(t *testing.T) {
		expectGuideText(t, "metrics.md", "OpenShift's telemetry", "`cluster:cpu_usage_cores:sum`")
	})
	//
	t.Run("images and commands of pods", func(t *testing.T) {
		expectGuideText(t, "workloads.md", "One RuntimeClass for each version", "With several versions you need RuntimeClasses",
			"with one version a RuntimeClass is still recommended", "`ltsc2019`", "`ltsc2022`", "windows/servercore",
			"`powershell.exe`", "microsoft.com/powershell", "`pwsh.exe`")
	})
}
