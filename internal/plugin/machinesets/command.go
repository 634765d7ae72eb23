// Package machinesets contains the commands that write, create and delete a MachineSet for Windows with the values of
// the cluster. hack/machineset.sh runs these commands for administrators with a checkout and without the plugin.
package machinesets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/machineset"
)

// findImage finds the newest image of a Windows version in a region of AWS.
type findImage func(ctx context.Context, region, version string) (image, name string, err error)

// command holds the settings of one run of a command.
type command struct {
	*cmdutil.Access
	findAMI findImage
	// from is the name of the MachineSet to copy values from.
	from     string
	template string
	file     string
	yes      bool
	options  machineset.Options
}

// New returns the command.
func New(a *cmdutil.Access) *cobra.Command { return newCommand(a, findAMI) }

func newCommand(a *cmdutil.Access, findAMI findImage) *cobra.Command {
	group := &cobra.Command{
		Use:   "machineset",
		Short: "Create a MachineSet for Windows with the values of the cluster",
		Long: `Create a MachineSet for Windows on AWS, Azure, GCP or vSphere. Network, security groups, identities, tags and disk
encryption come from a MachineSet of Linux workers, the image and the size from the platform's guide.`,
		Example: `  # Print it
  kubectl windows machineset generate

  # Create it with three Machines
  kubectl windows machineset apply --replicas=3`,
	}
	group.Args = withUsage(cobra.NoArgs)
	group.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	group.SetFlagErrorFunc(printUsage)
	group.AddCommand(newGenerateCommand(&command{Access: a, findAMI: findAMI}), newApplyCommand(&command{Access: a, findAMI: findAMI}),
		newDeleteCommand(&command{Access: a}))
	return group
}

func newGenerateCommand(c *command) *cobra.Command {
	sub := &cobra.Command{
		Use: "generate", Short: "Write the MachineSet as YAML",
		Example: `  kubectl windows machineset generate --zone=us-east-1b > machineset.yaml
  oc create -f machineset.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.generateMachineSet(cmd.Context()) },
	}
	c.addCommonFlags(sub)
	c.specFlags(sub.Flags())
	sub.Flags().StringVar(&c.file, "file", "", "file to write instead of standard output")
	return sub
}

func newApplyCommand(c *command) *cobra.Command {
	sub := &cobra.Command{
		Use: "apply", Short: "Create the MachineSet on the cluster",
		Long: `Create the MachineSet. A MachineSet of the same name is not changed.`,
		Example: `  kubectl windows machineset apply --version=2025 --replicas=2

  # On vSphere
  kubectl windows machineset apply --template=/dc1/vm/templates/windows-2022`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.apply(cmd.Context()) },
	}
	c.addCommonFlags(sub)
	c.specFlags(sub.Flags())
	return sub
}

func newDeleteCommand(c *command) *cobra.Command {
	sub := &cobra.Command{
		Use: "delete", Short: "Delete the MachineSet and its Machines from the cluster",
		Long:    `Delete the MachineSet that apply creates with the same flags. A MachineSet for Linux is not deleted.`,
		Example: `  kubectl windows machineset delete --name=winworker`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.deleteMachineSet(cmd.Context()) },
	}
	c.addCommonFlags(sub)
	sub.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation")
	return sub
}

// addCommonFlags adds the check of the arguments and the flags that determine the name of the MachineSet.
func (c *command) addCommonFlags(sub *cobra.Command) {
	sub.Args = withUsage(cobra.NoArgs)
	sub.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.checkOptions(); err != nil {
			return printUsage(cmd, err)
		}
		return nil
	}
	flags := sub.Flags()
	flags.StringVar(&c.options.Version, "version", machineset.Versions[0], "Windows Server 2019, 2022 or 2025")
	flags.StringVar(&c.options.Zone, "zone", "", "availability zone (default: the zone of the first worker MachineSet)")
	flags.StringVar(&c.options.Name, "name", "",
		"name of the MachineSet (default: composed of cluster, version and zone); on Azure and vSphere at most 9 characters")
	flags.StringVar(&c.from, "from", "", "worker MachineSet to copy values from (default: the first worker MachineSet)")
	completions := cobra.FixedCompletions(machineset.Versions, cobra.ShellCompDirectiveNoFileComp)
	if err := sub.RegisterFlagCompletionFunc("version", completions); err != nil {
		panic(err) // unknown flag
	}
}

// specFlags adds the flags that determine the content of the MachineSet.
func (c *command) specFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.Image, "image", "",
		"image: an AMI on AWS, publisher:offer:sku:version or a resource ID on Azure, a path on GCP")
	flags.StringVar(&c.template, "template", "", "image on vSphere: the full path of a template (docs/vsphere.md)")
	flags.Int32Var(&c.options.Replicas, "replicas", 1, "number of Machines")
}

// checkOptions refuses options that are invalid for every cluster.
func (c *command) checkOptions() error {
	if c.template != "" && c.options.Image != "" {
		return errors.New("--image and --template mean the same: use only one of them")
	}
	c.options.Image += c.template
	if !slices.Contains(machineset.Versions, c.options.Version) {
		return fmt.Errorf("unknown --version %q: one of %s", c.options.Version, strings.Join(machineset.Versions, ", "))
	}
	if c.options.Replicas < 0 {
		return fmt.Errorf("--replicas %d is less than 0", c.options.Replicas)
	}
	return nil
}

// printUsage prints the usage of a command before the error. The flags of kubectl are omitted, because they would
// hide the flags of the command.
func printUsage(cmd *cobra.Command, err error) error {
	lines := []string{"Usage:"}
	if !cmd.HasSubCommands() {
		lines = append(lines, "  "+cmd.UseLine(), "", strings.TrimRight(cmd.LocalNonPersistentFlags().FlagUsages(), "\n"))
	}
	for _, sub := range cmd.Commands() {
		lines = append(lines, fmt.Sprintf("  %-45s  %s", sub.CommandPath()+" [flags]", sub.Short))
	}
	fmt.Fprintln(cmd.ErrOrStderr(), strings.Join(append(lines, ""), "\n"))
	return err
}

func withUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, arguments []string) error {
		if err := check(cmd, arguments); err != nil {
			return printUsage(cmd, err)
		}
		return nil
	}
}

// newStrictClient returns a client that refuses fields unknown to the API server.
func (c *command) newStrictClient() (client.Client, error) {
	cluster, err := c.Client()
	if err != nil {
		return nil, err
	}
	return client.WithFieldValidation(cluster, metav1.FieldValidationStrict), nil
}
