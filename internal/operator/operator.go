// Package operator puts the controllers together and runs them.
package operator

import (
	"cmp"
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

	"github.com/windows-machine-config/wmco/internal/controller/lookup"
	"github.com/windows-machine-config/wmco/internal/controller/source/byoh"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// Config is everything that the operator gets from outside.
type Config struct {
	RESTConfig *rest.Config
	// Namespace is the operator's own: Secret, ConfigMap and WindowsInstances are there and nowhere else.
	Namespace string
	Version   string
	// Line says which clusters the operator serves; zero is the present line.
	Line support.ReleaseLine
	// PayloadDirectory holds what is brought to hosts.
	PayloadDirectory string
	// Dial connects to hosts; nil is a plain TCP dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookUp resolves DNS names of hosts; nil is the operating system's way.
	LookUp func(ctx context.Context, name string) ([]string, error)
	Clock  clock.WithTicker
	// MetricsAddress and ProbeAddress are host:port; "0" turns the server off.
	MetricsAddress, ProbeAddress string
	// MetricsCertificateDirectory holds tls.crt and tls.key, now or later; until then metrics are served with a
	// self-signed certificate.
	MetricsCertificateDirectory string
	LeaderElection              bool
	// Election are the durations of leader election; zero for the usual ones.
	Election Election
	// ReadLimit is how long the kinds that controllers follow may take to be read at the start; zero for the usual time.
	ReadLimit time.Duration
	// OperatorCondition names the object in which the operator reports its state to OLM; empty where OLM did not install
	// it.
	OperatorCondition string
	Debug             bool
	Log               nodespec.LogSettings
	// PauseImage is the image that holds a pod's namespaces on Windows nodes; empty for the usual one.
	PauseImage string
	// Patience is how long changes of the list of hosts must last before hosts are given back; zero is for the usual times.
	Patience byoh.Patience
	// LegacyAlgorithms are weak SSH algorithms that hosts may use, as remote.ParseLegacyAlgorithms reads them.
	LegacyAlgorithms []string
	Logger           logr.Logger
	// SkipNameValidation allows a second operator in one process, as tests need it.
	SkipNameValidation bool
}

// Run runs the operator until the context ends, an essential part fails, or the operator must be started again: then it
// returns no error, either.
func Run(ctx context.Context, c Config) error {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	c.Line = cmp.Or(c.Line, support.CurrentLine())
	c.Patience = c.Patience.OrDefault()
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
		// The API server's priority and fairness protects it. A limit here would make the progress of many hosts at once hold
		// up the work on each of them.
		c.RESTConfig.QPS = -1
	}
	if c.RESTConfig.WarningHandler == nil && c.RESTConfig.WarningHandlerWithContext == nil {
		// An API that is deprecated is read each minute.
		c.RESTConfig.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	}
	ctx, restart := context.WithCancel(ctx)
	defer restart()
	missing := c.newUnread()
	options := c.managerOptions(scheme, missing)
	options.NewCache = endingWith(ctx)
	mgr, err := ctrl.NewManager(c.RESTConfig, options)
	if err != nil {
		return fmt.Errorf("set up the operator: %w", err)
	}
	if err := c.addProbes(mgr); err != nil {
		return fmt.Errorf("set up the operator's probes: %w", err)
	}
	err = lookup.Add(ctx, missing.patient(mgr.GetFieldIndexer()))
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
		return fmt.Errorf("run the operator: %w", missing.explain(err))
	}
	return nil
}
