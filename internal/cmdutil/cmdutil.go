// Package cmdutil connects the commands of the plugin to the cluster. It provides the flags of kubectl, the
// client, and messages for refused requests.
package cmdutil

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/redirect"
)

// DefaultNamespace is the default namespace of the operator.
const DefaultNamespace = "openshift-windows-machine-config-operator"

// Limits of a command's requests per second and of its burst, the same as in kubectl, because a large fleet has
// many objects. The API server limits requests beyond its own capacity.
const (
	clientQPS   = 50
	clientBurst = 300
)

// Access holds the common dependencies of all commands: input and output, the cluster, and the clock.
type Access struct {
	genericiooptions.IOStreams
	Flags *genericclioptions.ConfigFlags
	Clock clock.WithTicker
}

// New returns the access with kubectl's defaults.
func New(streams genericiooptions.IOStreams, clock clock.WithTicker) *Access {
	flags := genericclioptions.NewConfigFlags(true)
	flags.Namespace = ptr.To("") // the default is the operator's namespace, not the context's
	streams.Out, streams.ErrOut = Printable(streams.Out), Printable(streams.ErrOut)
	return &Access{IOStreams: streams, Flags: flags, Clock: clock}
}

// AddFlags adds the flags of kubectl to a command and its subcommands.
func (a *Access) AddFlags(command *cobra.Command) {
	flags := command.PersistentFlags()
	a.Flags.AddFlags(flags)
	flags.Lookup("namespace").Usage = "namespace of the operator"
	flags.Lookup("namespace").DefValue = DefaultNamespace
}

// Namespace returns the namespace of the operator.
func (a *Access) Namespace() string {
	if named := *a.Flags.Namespace; named != "" {
		return named
	}
	return DefaultNamespace
}

// Config returns the configuration for the cluster selected by the flags and the kubeconfig. Clients follow no
// redirect.
func (a *Access) Config() (*rest.Config, error) {
	config, err := a.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("load the configuration of the cluster: %w", err)
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	redirect.Refuse(config)
	return config, nil
}

// Client returns a client for the cluster selected by the flags and the kubeconfig.
func (a *Access) Client() (client.Client, error) {
	config, err := a.Config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme,
		configv1.Install, machinev1beta1.Install} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return explainingClient{c}, nil
}

// Width returns the number of columns of the output terminal; 0 without a terminal.
func (a *Access) Width() int { return terminalWidth(a.Out) }

// IsInteractive reports whether the standard input is a terminal.
func (a *Access) IsInteractive() bool {
	file, ok := a.In.(descriptor)
	return ok && term.IsTerminal(int(file.Fd()))
}

var errNotConfirmed = errors.New("nothing was changed")

// Confirm prints warnings, and prompts an administrator to continue. Any answer but yes returns an error.
func (a *Access) Confirm(dangers ...string) error {
	for _, danger := range dangers {
		fmt.Fprintln(a.ErrOut, danger)
	}
	if !a.IsInteractive() {
		return errors.New("standard input is not a terminal: use --yes to confirm")
	}
	fmt.Fprint(a.ErrOut, "Continue? [y/N] ")
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil {
		return errNotConfirmed
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

func terminalWidth(out io.Writer) int {
	file, ok := out.(descriptor)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
