package inspection

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cluster"
	"github.com/windows-machine-config/wmco/internal/controller/instance/desired"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/controller/sshkeysecret"
	"github.com/windows-machine-config/wmco/internal/fleet"
	"github.com/windows-machine-config/wmco/internal/inspection/diagnosis"
	"github.com/windows-machine-config/wmco/internal/inspection/dryrun"
	"github.com/windows-machine-config/wmco/internal/inspection/hostsession"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/hostlist"
	"github.com/windows-machine-config/wmco/internal/policy/nodename"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/sshkey"
)

// Forecast is the output of the command plan for a host.
type Forecast = dryrun.Forecast

// Diagnosis is the output of the command diagnose for a host.
type Diagnosis = diagnosis.Diagnosis

// maxConcurrentHosts is the maximum number of hosts inspected concurrently.
const maxConcurrentHosts = 8

// defaultUser is the user for login to an unlisted host.
const defaultUser = "Administrator"

// inspector inspects hosts with the operator's configuration.
type inspector struct {
	operator.Config
	reader    client.Client
	clientset kubernetes.Interface
	payload   *payload.Payload
	connector hostsession.Connector
}

func newInspector(configure func() (operator.Config, error)) (*inspector, error) {
	c, err := configure()
	if err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
		if c.LookUp == nil {
			c.LookUp = net.DefaultResolver.LookupHost
		}
	}
	if len(c.Line.Minors) == 0 {
		c.Line = support.CurrentLine()
	}
	i := &inspector{Config: c}
	scheme, err := operator.NewScheme()
	if err != nil {
		return nil, err
	}
	if i.reader, err = client.New(c.RESTConfig, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("create a client for the API server: %w", err)
	}
	if i.clientset, err = kubernetes.NewForConfig(c.RESTConfig); err != nil {
		return nil, fmt.Errorf("create a client for the API server: %w", err)
	}
	if i.payload, err = payload.Load(c.PayloadDirectory); err != nil {
		return nil, err
	}
	i.connector = hostsession.Connector{Payload: i.payload, Clock: c.Clock, Rand: rand.Reader, Instances: i.listInstances,
		Dialer: &remote.Dialer{Dial: c.Dial, LookUp: c.LookUp, Clock: c.Clock, LegacyAlgorithms: c.LegacyAlgorithms}}
	return i, nil
}

// listInstances lists the WindowsInstances.
func (i *inspector) listInstances(ctx context.Context) ([]v1alpha1.WindowsInstance, error) {
	all, err := fleet.ReadInstances(ctx, i.reader, i.Namespace)
	if err != nil {
		return nil, err
	}
	instances := make([]v1alpha1.WindowsInstance, 0, len(all))
	for n := range all {
		instances = append(instances, all[n].WindowsInstance)
	}
	return instances, nil
}

// selectInstances returns the named instances, or all.
func (i *inspector) selectInstances(ctx context.Context, names []string) ([]fleet.Instance, error) {
	all, err := fleet.ReadInstances(ctx, i.reader, i.Namespace)
	if err != nil || len(names) == 0 {
		return all, err
	}
	var chosen []fleet.Instance
	for _, name := range names {
		instance, err := fleet.Find(all, name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, instance)
	}
	return chosen, nil
}

// planHosts computes the forecasts of the named hosts, or of all hosts, and writes them.
func (i *inspector) planHosts(ctx context.Context, names []string, write func([]Forecast) error) error {
	chosen, err := i.selectInstances(ctx, names)
	if err != nil {
		return err
	}
	facts, _, err := cluster.Read(ctx, i.reader, i.Namespace, nodespec.ServingCertificate{})
	if err != nil {
		return clusterUnusableError(err)
	}
	key, err := sshkeysecret.Read(ctx, i.reader, i.Namespace)
	if err != nil {
		return err
	}
	forecaster := i.newForecaster()
	forecasts, errs := make([]Forecast, len(chosen)), make([]error, len(chosen))
	var group sync.WaitGroup
	places := make(chan struct{}, maxConcurrentHosts)
	for n := range chosen {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			forecasts[n], errs[n] = forecaster.Of(ctx, &chosen[n].WindowsInstance, facts, key)
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return errors.Join(append(errs, context.Cause(ctx))...)
	}
	if err := write(forecasts); err != nil {
		return err
	}
	return planStatus(forecasts)
}

// clusterUnusableError returns the error of a cluster without a valid NodeSpec.
func clusterUnusableError(err error) error {
	return fmt.Errorf("the cluster's configuration cannot be used: %w", err)
}

func (i *inspector) newForecaster() dryrun.Forecaster {
	return dryrun.Forecaster{
		Reader: i.reader, Clientset: i.clientset, Connector: i.connector, Line: i.Line, Namespace: i.Namespace,
		Specs: desired.SpecBuilder{Payload: i.payload, Line: i.Line, Nodes: nodes.Nodes{Live: i.reader}, Version: i.Version, Log: i.Log, PauseImage: i.PauseImage, Debug: i.Debug},
	}
}

// planStatus returns the exit status of a plan: no error if nothing would be changed.
func planStatus(forecasts []Forecast) error {
	var result error
	for _, f := range forecasts {
		switch {
		case f.Error != "":
			return ExitStatus(1)
		case f.HasChanges():
			result = Found
		}
	}
	return result
}

func (i *inspector) readKey(ctx context.Context) (sshkey.Key, error) {
	key, err := sshkeysecret.Read(ctx, i.reader, i.Namespace)
	if err != nil {
		err = fmt.Errorf("%w. %s", err, sshkeysecret.FixHint(i.Namespace))
	}
	return key, err
}

// diagnoseHost diagnoses a host, listed or not, and writes the result.
func (i *inspector) diagnoseHost(ctx context.Context, name, user string, write func(Diagnosis) error) error {
	key, err := i.readKey(ctx)
	if err != nil {
		return err
	}
	subject := diagnosis.Subject{}
	if facts, _, err := cluster.Read(ctx, i.reader, i.Namespace, nodespec.ServingCertificate{}); err != nil {
		subject.Unknown = "The cluster's configuration cannot be used: " + err.Error()
	} else {
		subject.Cluster = &facts
	}
	if err := i.findSubject(ctx, name, key, &subject); err != nil {
		return err
	}
	subject.Target.User = cmp.Or(user, subject.Target.User, defaultUser)
	climber := diagnosis.Checker{Connector: i.connector, Dial: i.Dial, Clock: i.Clock, Line: i.Line, Payload: i.payload}
	found, err := climber.Diagnose(ctx, subject)
	if err != nil && found.Checks == nil {
		return err
	}
	if err := errors.Join(write(found), err); err != nil {
		return err
	}
	if found.HasFailed() {
		return Found
	}
	return nil
}

// findSubject sets the host of the subject: the host of an instance, or any other host by its address.
func (i *inspector) findSubject(ctx context.Context, name string, key sshkey.Key, subject *diagnosis.Subject) error {
	chosen, err := i.selectInstances(ctx, []string{name})
	switch {
	case errors.Is(err, fleet.ErrUnknown):
		if err := hostlist.ValidateAddress(name); err != nil {
			return err
		}
		subject.Target = remote.Target{Address: name, Key: key, NoHostAt: noHostAt(subject.Cluster)}
		return nil
	case err != nil:
		return err
	}
	instance := &chosen[0].WindowsInstance
	subject.HasOperatorAgent = instance.Status.Host != nil
	subject.Node = instance.Status.NodeRef != nil && instance.Status.NodeRef.UID != ""
	subject.Target, err = i.newTarget(ctx, instance, key, subject.Cluster)
	return err
}

// newTarget returns the connection target for the host of an instance; facts are nil if the cluster's settings are
// unknown.
func (i *inspector) newTarget(ctx context.Context, instance *v1alpha1.WindowsInstance, key sshkey.Key, facts *nodespec.Cluster) (remote.Target, error) {
	machine, err := nodes.Machines{Live: i.reader}.Get(ctx, instance)
	if err != nil {
		return remote.Target{}, fmt.Errorf("read the expected host key from the Machine: %w", err)
	}
	announced := ""
	if machine != nil {
		announced = machine.Annotations[v1alpha1.AnnotationExpectedHostKey]
	}
	known := nodespec.Cluster{}
	if facts != nil {
		known = *facts
	}
	target, o := hostjobs.TargetOf(instance, key, known, announced)
	if o != nil {
		return target, fmt.Errorf("%s %s", o.Message, o.NextAction)
	}
	return target, nil
}

// noHostAt prevents connections to the cluster itself. Without the cluster's facts, only the general rules apply.
func noHostAt(facts *nodespec.Cluster) func(netip.Addr) string {
	known := nodespec.Cluster{}
	if facts != nil {
		known = *facts
	}
	return func(address netip.Addr) string { return nodename.NoHostAt(address, known) }
}
