// Command wmco is the Windows Machine Config Operator.
package main

import (
	"crypto/fips140"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	_ "time/tzdata" // the image has no time zones, and maintenance windows name them

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/windows-machine-config/wmco/internal/controller/operatorcondition"
	"github.com/windows-machine-config/wmco/internal/inspection"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/podexec"
	"github.com/windows-machine-config/wmco/internal/redirect"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// version is set by the build.
var version = "0.0.0-unversioned"

func main() {
	command := newCommand()
	command.SetArgs(commandArguments(os.Args))
	err := command.ExecuteContext(ctrl.SetupSignalHandler())
	if status := inspection.ExitStatus(0); errors.As(err, &status) {
		os.Exit(status.ExitStatus())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wmco:", err)
		os.Exit(statusOf(err))
	}
}

// statusOf returns the exit status for an error. kubectl windows, which may be newer, detects an unknown flag
// by this status.
func statusOf(err error) int {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		return podexec.UnknownFlag
	}
	return 1
}

// inspectionMemory is Go's soft memory limit, in bytes, for a command that inspects hosts. GOMEMLIMIT is for
// the operator, which runs in the same container.
const inspectionMemory = 200 << 20

func newCommand() *cobra.Command {
	c := operator.Config{Version: version}
	var legacyAlgorithms string
	command := &cobra.Command{
		Use:           "wmco",
		Short:         "The Windows Machine Config Operator turns Windows Server hosts into nodes of an OpenShift cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readEnvironment(&c, legacyAlgorithms); err != nil {
				return err
			}
			startLog(&c)
			if _, ignored := parseDebugLogging(os.Getenv(argumentsVariable)); len(ignored) > 0 {
				c.Logger.Info("arguments in the environment variable are ignored", "variable", argumentsVariable, "ignored", ignored)
			}
			return operator.Run(cmd.Context(), c)
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.PayloadDirectory, "payload-dir", "/payload",
		"directory with the files that the operator copies to hosts")
	flags.StringVar(&c.MetricsAddress, "metrics-bind-address", "0",
		`address of the metrics server (HTTPS, for clients with the permission to get /metrics); "0" disables it`)
	flags.StringVar(&c.MetricsCertificateDirectory, "metrics-cert-dir", "",
		"directory with tls.crt and tls.key of the metrics server (default: a self-signed certificate)")
	flags.StringVar(&c.ProbeAddress, "health-probe-bind-address", ":8081",
		`address of the health and readiness probes; "0" disables them`)
	flags.BoolVar(&c.LeaderElection, "leader-elect", true,
		"enable leader election, so that only one replica is active")
	flags.BoolVar(&c.Debug, debugFlag, false,
		"debug logs of the operator and on hosts; the environment variable "+argumentsVariable+"=--"+debugFlag+" has the same effect")
	flags.StringVar(&legacyAlgorithms, legacyAlgorithmsFlag, os.Getenv(legacyAlgorithmsVariable),
		"weak SSH algorithms to allow for hosts with an old OpenSSH, separated by commas; the default is the value of the environment variable "+legacyAlgorithmsVariable)
	// controller-runtime registers --kubeconfig on the standard flag set.
	flags.AddGoFlag(flag.CommandLine.Lookup("kubeconfig"))
	command.AddCommand(newGatherCommand(), &cobra.Command{
		Use: "version", Short: "Print the versions of the operator and of Go", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s version: %q, go version: %q\n", os.Args[0], version,
				runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
			return err
		},
	})
	for _, inspecting := range inspection.Commands(func() (operator.Config, error) {
		debug.SetMemoryLimit(inspectionMemory)
		log.SetLogger(logr.Discard()) // the output belongs to the caller, and errors are returned
		err := readEnvironment(&c, legacyAlgorithms)
		return c, err
	}) {
		// kubectl windows passes the flags of the operator in the same pod to these commands.
		inspecting.Flags().AddFlagSet(flags)
		command.AddCommand(inspecting)
	}
	return command
}

// The flag and the variable that allow weak SSH algorithms. OLM's Subscription can set only the variable.
const (
	legacyAlgorithmsFlag     = "ssh-legacy-algorithms"
	legacyAlgorithmsVariable = "SSH_LEGACY_ALGORITHMS"
)

// The flag and the variable that request debug logs. OLM's Subscription can set only the variable, under the
// name of earlier releases.
const (
	debugFlag         = "debugLogging"
	argumentsVariable = "ARGS"
)

// parseDebugLogging reports whether the value of ARGS requests debug logs, and returns the ignored arguments.
func parseDebugLogging(value string) (debug bool, ignored []string) {
	for _, argument := range strings.Fields(value) {
		name, setting, set := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		enabled, err := strconv.ParseBool(setting)
		if !strings.HasPrefix(argument, "-") || name != debugFlag || set && err != nil {
			ignored = append(ignored, argument)
			continue
		}
		debug = !set || enabled
	}
	return debug, ignored
}

// pauseImageVariable is the variable for the image that holds a pod's namespaces. Tools that mirror the images
// of an operator search for the prefix.
const pauseImageVariable = "RELATED_IMAGE_WINDOWS_PAUSE"

// pauseImage returns the configured pause image; empty for the default image.
func pauseImage() (string, error) {
	image := os.Getenv(pauseImageVariable)
	if image == "" {
		return "", nil
	}
	if err := nodespec.CheckPauseImage(image); err != nil {
		return "", fmt.Errorf("the environment variable %s: %w", pauseImageVariable, err)
	}
	return image, nil
}

// fipsVersion returns the version of Go's FIPS 140-3 module in use; "off" without.
func fipsVersion() string {
	if !fips140.Enabled() {
		return "off"
	}
	return fips140.Version()
}

// readEnvironment reads the settings from the environment.
func readEnvironment(c *operator.Config, legacyAlgorithms string) error {
	var err error
	if c.LegacyAlgorithms, err = remote.ParseLegacyAlgorithms(legacyAlgorithms); err != nil {
		return fmt.Errorf("the flag --%s, or the environment variable %s: %w", legacyAlgorithmsFlag,
			legacyAlgorithmsVariable, err)
	}
	c.Namespace = os.Getenv("WATCH_NAMESPACE")
	if c.Namespace == "" || strings.Contains(c.Namespace, ",") {
		return fmt.Errorf("the environment variable WATCH_NAMESPACE is %q: it must be exactly the namespace of the operator", c.Namespace)
	}
	if debug, _ := parseDebugLogging(os.Getenv(argumentsVariable)); debug {
		c.Debug = true
	}
	c.OperatorCondition = os.Getenv(operatorcondition.NameVariable)
	c.Log, err = nodespec.ParseLogSettings(os.Getenv("SERVICES_LOG_FILE_SIZE"), os.Getenv("SERVICES_LOG_FILE_AGE"),
		os.Getenv("SERVICES_LOG_FLUSH_INTERVAL"))
	if err != nil {
		return err
	}
	if c.PauseImage, err = pauseImage(); err != nil {
		return err
	}
	if c.RESTConfig, err = config.GetConfig(); err != nil {
		return errors.Join(errors.New("no API server is configured: run in a cluster, or set --kubeconfig or KUBECONFIG"),
			err)
	}
	redirect.Refuse(c.RESTConfig)
	return nil
}

// startLog creates the operator's log, and writes the first entry.
func startLog(c *operator.Config) {
	c.Logger = zap.New(zap.UseDevMode(c.Debug))
	ctrl.SetLogger(c.Logger)
	klog.SetLogger(c.Logger)
	c.Logger.Info("starting the operator", "version", version, "fips140", fipsVersion())
}
