package guides

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/create"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/scale"
	"k8s.io/kubectl/pkg/cmd/set"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/wait"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// kubectlVariable is set in processes that act as kubectl, to the program to start.
const kubectlVariable = "WMCO_TEST_GUIDE_KUBECTL"

// changing lists the commands that change objects. The API server validates their changes in a dry run, so that the
// cluster is unchanged for each line of a guide.
var changing = []string{"annotate", "apply", "create", "delete", "label", "patch", "scale", "set"}

// runKubectl runs a command line of a guide with kubectl's own code.
func runKubectl(arguments []string) int {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	flags := genericclioptions.NewConfigFlags(true)
	f := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
	root := &cobra.Command{Use: "oc", SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(annotate.NewCmdAnnotate("oc", f, streams), apply.NewCmdApply("oc", f, streams),
		create.NewCmdCreate(f, streams), delete.NewCmdDelete(f, streams), describe.NewCmdDescribe("oc", f, streams),
		edit.NewCmdEdit(f, streams), get.NewCmdGet("oc", f, streams), label.NewCmdLabel(f, streams),
		patch.NewCmdPatch(f, streams), scale.NewCmdScale(f, streams), set.NewCmdSet(f, streams),
		wait.NewCmdWait(flags, streams))
	root.SetArgs(withDryRun(arguments))
	if err := root.Execute(); err != nil {
		return 1
	}
	return 0
}

// withDryRun modifies a command so that it changes and watches nothing.
func withDryRun(arguments []string) []string {
	arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == "-w" })
	isDry := func(a string) bool { return strings.HasPrefix(a, "--dry-run") }
	for _, argument := range arguments {
		if slices.Contains(changing, argument) && !slices.ContainsFunc(arguments, isDry) {
			return append(arguments, "--dry-run=server")
		}
	}
	return arguments
}

// commandEnvironment returns an administrator's variables in a lab. The operator's namespace is the current one, as `oc
// project` writes it into the kubeconfig.
func commandEnvironment(t *testing.T, r *testenv.Environment, dir string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(r.Cluster().Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = r.Namespace()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), kubectlVariable+"="+self, "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(dir, "cache"),
		"EDITOR=true")
}
