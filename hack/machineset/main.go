// Command machineset makes a MachineSet for Windows with the values of the cluster that the kubeconfig names.
// hack/machineset.sh starts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"github.com/windows-machine-config/wmco/internal/machineset"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	log.SetLogger(logr.Discard())
	c := command{stdout: os.Stdout, stderr: os.Stderr, connect: connect, findAMI: findAMI}
	os.Exit(c.run(ctx, os.Args[1:]))
}

// What the command can do.
const (
	actionWrite  = ""
	actionApply  = "apply"
	actionDelete = "delete"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// fileName is the file that is written, in the current directory.
const fileName = "MachineSet.yaml"

type command struct {
	stdout, stderr io.Writer
	connect        func() (client.Client, error)
	findAMI        func(ctx context.Context, region, version string) (image, name string, err error)
}

type arguments struct {
	action string
	// from names the MachineSet that the values are taken from.
	from    string
	options machineset.Options
}

// run does what the arguments say and returns the exit code.
func (c command) run(ctx context.Context, args []string) int {
	a, flags, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		printUsage(c.stdout, flags)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(c.stderr, "machineset: %v\n\n", err)
		printUsage(c.stderr, flags)
		return exitUsage
	}
	if err := c.do(ctx, a); err != nil {
		fmt.Fprintf(c.stderr, "machineset: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string) (arguments, *pflag.FlagSet, error) {
	var a arguments
	var template string
	flags := pflag.NewFlagSet("machineset", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {} // run prints it, to the right place
	flags.StringVar(&a.options.Version, "version", machineset.Versions[0], "Windows Server 2019, 2022 or 2025")
	flags.StringVar(&a.options.Image, "image", "",
		"the image: an AMI on AWS, publisher:offer:sku:version or a resource ID on Azure, a path on GCP")
	flags.StringVar(&template, "template", "", "the image on vSphere: the full path of a template (docs/vsphere.md)")
	flags.Int32Var(&a.options.Replicas, "replicas", 1, "the number of Machines")
	flags.StringVar(&a.options.Zone, "zone", "", "the availability zone (default: the zone of the first worker MachineSet)")
	flags.StringVar(&a.options.Name, "name", "",
		"the name of the MachineSet (default: made from cluster, version and zone); on Azure and vSphere at most 9 characters")
	flags.StringVar(&a.from, "from", "", "the worker MachineSet to copy values from (default: the first one)")
	if err := flags.Parse(args); err != nil {
		return a, flags, err
	}
	switch rest := flags.Args(); {
	case len(rest) > 1:
		return a, flags, fmt.Errorf("too many arguments: %s", strings.Join(rest, " "))
	case len(rest) == 1 && !slices.Contains([]string{actionApply, actionDelete}, rest[0]):
		return a, flags, fmt.Errorf("unknown argument %q", rest[0])
	case len(rest) == 1:
		a.action = rest[0]
	}
	if template != "" && a.options.Image != "" {
		return a, flags, errors.New("--image and --template mean the same: use only one of them")
	}
	a.options.Image += template
	if !slices.Contains(machineset.Versions, a.options.Version) {
		return a, flags, fmt.Errorf("unknown --version %q", a.options.Version)
	}
	if a.options.Replicas < 0 {
		return a, flags, fmt.Errorf("--replicas %d is less than 0", a.options.Replicas)
	}
	return a, flags, nil
}

func printUsage(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprintf(w, `Makes a MachineSet for Windows with the values of the cluster that the current kubeconfig names.

Usage: hack/machineset.sh [apply | delete] [flags]

  (no argument)   write it to %s
  apply           create it on the cluster, without a file
  delete          delete it from the cluster, and its Machines with it

%s`, fileName, flags.FlagUsages())
}

// connect returns a client for the current context: --kubeconfig is not a flag of this command, KUBECONFIG and
// ~/.kube/config are read.
func connect() (client.Client, error) {
	restConfig, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w. Log in with oc login, or set KUBECONFIG", err)
	}
	return newClient(restConfig)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(configv1.Install(scheme), machinev1beta1.Install(scheme))
}
