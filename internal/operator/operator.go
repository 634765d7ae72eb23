// Package operator assembles and runs the controllers.
package operator

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/internal/controller/index"
	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// Config is the external configuration of the operator.
type Config struct {
	RESTConfig *rest.Config
	// Namespace is the namespace of the operator, the only one with its Secret, ConfigMap and WindowsInstances.
	Namespace string
	Version   string
	// Line defines the clusters that the operator serves; zero is the current line.
	Line support.ReleaseLine
	// PayloadDirectory is the directory of the payload for hosts.
	PayloadDirectory string
	// Dial connects to hosts; nil is a plain TCP dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookUp resolves DNS names of hosts; nil is the resolver of the operating system.
	LookUp func(ctx context.Context, name string) ([]string, error)
	Clock  clock.WithTicker
	// MetricsAddress and ProbeAddress are host:port; "0" disables the server.
	MetricsAddress, ProbeAddress string
	// MetricsCertificateDirectory contains tls.crt and tls.key, possibly only later; until then metrics are
	// served with a self-signed certificate.
	MetricsCertificateDirectory string
	LeaderElection              bool
	// Election holds the durations of leader election; zero for the defaults.
	Election Election
	// ReadTimeout is the timeout for reading all watched kinds at the start; zero for the default.
	ReadTimeout time.Duration
	// OperatorCondition is the name of the object for reporting the operator's state to OLM; empty if OLM did
	// not install the operator.
	OperatorCondition string
	Debug             bool
	Log               nodespec.LogSettings
	// PauseImage is the image that holds a pod's namespaces on Windows nodes; empty for the default.
	PauseImage string
	// RemovalDelays is how long changes of the list of hosts must last before hosts are restored; zero is for the
	// default durations.
	RemovalDelays byoh.RemovalDelays
	// LegacyAlgorithms are weak SSH algorithms that hosts may use, as parsed by remote.ParseLegacyAlgorithms.
	LegacyAlgorithms []string
	Logger           logr.Logger
	// SkipNameValidation allows a second operator in one process, which tests need.
	SkipNameValidation bool
}

// Run runs the operator until the context ends, an essential part fails, or the operator must be restarted. Run
// returns no error for a restart, either.
func Run(ctx context.Context, c Config) error {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if len(c.Line.Minors) == 0 {
		c.Line = support.CurrentLine()
	}
	c.RemovalDelays = c.RemovalDelays.WithDefaults()
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.LookUp == nil {
		c.LookUp = net.DefaultResolver.LookupHost
	}
	if len(c.LegacyAlgorithms) > 0 {
		c.Logger.Info("WARNING: weak SSH algorithms are allowed: an attacker who controls the network between operator and hosts may read or change the traffic; "+
			"update OpenSSH on the hosts that need them", "algorithms", strings.Join(c.LegacyAlgorithms, ","))
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	c.RESTConfig = rest.CopyConfig(c.RESTConfig)
	if c.RESTConfig.QPS == 0 {
		// The API server protects itself with priority and fairness. A limit here would make the progress
		// reports of many hosts block the work on each of these hosts.
		c.RESTConfig.QPS = -1
	}
	if c.RESTConfig.WarningHandler == nil && c.RESTConfig.WarningHandlerWithContext == nil {
		// A deprecated API is read each minute.
		c.RESTConfig.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	}
	ctx, restart := context.WithCancel(ctx)
	defer restart()
	missing := c.newUnreadableKinds()
	options := c.managerOptions(scheme, missing)
	options.NewCache = newShutdownAwareCache(ctx)
	mgr, err := ctrl.NewManager(c.RESTConfig, options)
	if err != nil {
		return fmt.Errorf("set up the operator: %w", err)
	}
	if err := c.addProbes(mgr); err != nil {
		return fmt.Errorf("set up the operator's probes: %w", err)
	}
	err = index.Add(ctx, missing.newRetryingIndexer(mgr.GetFieldIndexer()))
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set up the operator's cache: %w", err)
	}
	served, err := c.readServed(ctx, mgr, missing, restart)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	pool, err := c.addControllers(mgr, served)
	if err != nil {
		return err
	}
	defer pool.CloseAll()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", missing.explainError(err))
	}
	return nil
}
