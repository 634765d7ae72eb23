package machinesets

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/machineset"
)

// The guide's query for the infrastructure name is run unchanged: a shell parses the line, and kubectl's own
// code queries the API server. R-020
func TestGuides_InfrastructureNameQueryRuns(t *testing.T) {
	f := newFixture(t, configv1.AWSPlatformType)
	infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(infrastructure), infrastructure); err != nil {
		t.Fatal(err)
	}
	name := infrastructure.Status.InfrastructureName
	if name == "" {
		t.Fatal("the lab's cluster has no infrastructure name")
	}
	if got := runOC(t, lab.Cluster(t).Kubeconfig,
		shellArguments(t, guideLine(t, "machinesets.md", "oc get -o jsonpath"))); got != name+"\n" {
		t.Errorf("it prints %q, and the infrastructure's name is %q", got, name)
	}
	t.Run("and that is the value which the samples need", func(t *testing.T) {
		f.createWorkerSet("linux-workers", "aws.yaml")
		f.expectSuccess("generate", "--replicas=0")
		written := f.stdout.String()
		if want := machineset.LabelCluster + ": " + name + "\n"; !strings.Contains(written, want) {
			t.Errorf("the MachineSet that the command writes has no %q:\n%s", want, written)
		}
	})
}

// guideLine returns the single line of a guide's commands with the given beginning.
func guideLine(t *testing.T, guide, begins string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testdata, "..", "..", "..", "..", "docs", guide))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", " ")) {
		if command, ok := strings.CutPrefix(line, "    "); ok && strings.HasPrefix(command, begins) {
			found = append(found, command)
		}
	}
	if len(found) != 1 {
		t.Fatalf("docs/%s has %d commands that begin with %q", guide, len(found), begins)
	}
	return found[0]
}

// shellArguments returns a shell's arguments for a line that calls oc.
func shellArguments(t *testing.T, line string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "bash", "-euc", `oc() { printf '%s\0' "$@"; }`+"\n"+line).Output()
	if err != nil {
		t.Fatalf("the shell refuses %q: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
}

// runOC runs `oc get`, with kubectl's implementation.
func runOC(t *testing.T, kubeconfig string, arguments []string) string {
	t.Helper()
	if len(arguments) == 0 || arguments[0] != "get" {
		t.Fatalf("it is not oc get: %q", arguments)
	}
	cmdutil.BehaviorOnFatal(func(message string, status int) { t.Fatalf("oc ends with status %d: %s", status, message) })
	defer cmdutil.DefaultBehaviorOnFatal()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &kubeconfig
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	command := get.NewCmdGet("oc", cmdutil.NewFactory(flags), streams)
	command.SetArgs(arguments[1:])
	command.SetErr(stderr)
	if err := command.ExecuteContext(t.Context()); err != nil || stderr.Len() > 0 {
		t.Fatalf("oc %q: %v\n%s", arguments, err, stderr)
	}
	return stdout.String()
}
