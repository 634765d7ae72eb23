package image

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/windows-machine-config/wmco/lab/testenv"
)

// kubectlVariable is set in processes that act as kubectl.
const kubectlVariable = "WMCO_TEST_KUBECTL"

// runKubectl runs kubectl's own code, with the commands that hack/deploy uses.
func runKubectl() int {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	flags := genericclioptions.NewConfigFlags(true)
	factory := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
	command := &cobra.Command{Use: "kubectl", SilenceUsage: true}
	flags.AddFlags(command.PersistentFlags())
	command.AddCommand(apply.NewCmdApply("kubectl", factory, streams), delete.NewCmdDelete(factory, streams),
		get.NewCmdGet("kubectl", factory, streams))
	if err := command.Execute(); err != nil {
		return 1
	}
	return 0
}

// asKubectl returns the path of this program, and the variables that make it act as kubectl for the lab's cluster.
func asKubectl(r *testenv.Environment) (self string, environment []string, err error) {
	self, err = os.Executable()
	return self, []string{kubectlVariable + "=1", "KUBECTL=" + self, "KUBECONFIG=" + r.Cluster().Kubeconfig,
		"NAMESPACE=" + r.Namespace()}, err
}

// runMakeTarget runs a target of the Makefile for the lab's cluster.
func runMakeTarget(ctx context.Context, r *testenv.Environment, arguments ...string) (string, error) {
	self, environment, err := asKubectl(r)
	if err != nil {
		return "", err
	}
	return runCommand(ctx, environment, "make", append(arguments, "CLUSTER_KUBECTL="+self)...)
}
