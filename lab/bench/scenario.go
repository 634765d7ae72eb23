package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/audit"
	"github.com/windows-machine-config/wmco/lab/bench/hostcost"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// serviceAccount is the operator's, as deploy/ names it.
const serviceAccount = "windows-machine-config-operator"

// scenario is a number of hosts at a distance, with a control plane and an operator of its own.
type scenario struct {
	clock      clock.WithTicker
	hosts      int
	roundTrip  time.Duration
	payloadDir string
	agent      string
	idle       time.Duration
	version    string // of the operator; empty for the one that the rig has

	rig      *rig.Rig
	operator *rig.Operator
	wires    *wires
	audit    *audit.Requests
}

func (s *scenario) String() string {
	return fmt.Sprintf("%d hosts at %s round trip", s.hosts, s.roundTrip)
}

// start boots control plane and hosts, and installs the operator without running it.
func (s *scenario) start(ctx context.Context) (err error) {
	link := winhost.NewLink(s.clock, winhost.LinkProperties{RoundTrip: s.roundTrip})
	s.rig, err = rig.New(ctx, rig.Options{
		Hosts: rig.InstantHosts(s.hosts), Clock: s.clock, PayloadDir: s.payloadDir, Agent: s.agent, Link: link,
		ControlPlane: cluster.Options{Audit: true},
	})
	if err != nil {
		return err
	}
	if _, err := s.rig.InstallOperator(ctx, ""); err != nil {
		return err
	}
	s.audit = audit.CountRequests(audit.Open(s.rig.Cluster().AuditLog),
		audit.ServiceAccount(s.rig.Namespace(), serviceAccount))
	s.wires = newWires()
	return s.rig.CreateKey(ctx)
}

func (s *scenario) close() error {
	if s.rig == nil {
		return nil
	}
	return s.rig.Close()
}

func (s *scenario) run() (err error) {
	s.operator, err = s.rig.RunOperator(func(c *operator.Config) {
		c.RESTConfig.Dial, c.Version = s.wires.dialer(c.RESTConfig.Dial), cmp.Or(s.version, c.Version)
	})
	return err
}

// join measures the way from the ConfigMap to all Ready, with an operator that runs already.
func (s *scenario) join(ctx context.Context) (Join, error) {
	before, err := s.counts()
	if err != nil {
		return Join{}, err
	}
	if err := s.run(); err != nil {
		return Join{}, err
	}
	if err := s.settle(ctx); err != nil {
		return Join{}, err
	}
	started, err := s.counts() // what the operator asks for at its start is no part of a join
	if err != nil {
		return Join{}, err
	}
	begin := s.clock.Now()
	if err := s.rig.ListHosts(ctx); err != nil {
		return Join{}, err
	}
	if err := s.rig.WaitReady(ctx); err != nil {
		return Join{}, err
	}
	seconds := s.clock.Since(begin).Seconds()
	if err := s.settle(ctx); err != nil {
		return Join{}, err
	}
	after, err := s.counts()
	if err != nil {
		return Join{}, err
	}
	costs := hostcost.Differences(after.costs, before.costs)
	join := Join{
		Hosts: s.hosts, RoundTrip: s.roundTrip, Seconds: seconds, Worst: hostcost.Worst(costs), All: hostcost.Sum(costs),
		Steps: after.steps - before.steps, Reads: after.reads - started.reads, Writes: after.writes - started.writes,
	}
	return join, join.check()
}

// check refuses counts that cannot be: what is not seen here would be praised as silence later.
func (j Join) check() error {
	var faults []error
	for what, n := range map[string]int{
		"SSH connections": j.All.Connections, "execs": j.All.Execs, "SFTP sessions": j.All.SFTPSessions,
		"process starts":     j.All.Processes,
		"service operations": j.All.Services, "steps": j.Steps, "API reads": j.Reads, "API writes": j.Writes,
	} {
		if n < j.Hosts {
			faults = append(faults, fmt.Errorf("%d %s were seen for %d hosts that became Ready: the measurement is broken", n,
				what, j.Hosts))
		}
	}
	return errors.Join(faults...)
}

// leftAlone measures a time in which nobody does anything.
func (s *scenario) leftAlone(ctx context.Context) (Quiet, error) {
	return s.quiet(LeftAlone, func() error { return s.wait(ctx, s.idle) })
}

// lookAgain cuts the operator's connections to the API server and touches all that it watches, so that it looks at each
// instance.
func (s *scenario) lookAgain(ctx context.Context) (Quiet, error) {
	return s.quiet(LookAgain, func() error {
		looked, err := s.awaitReconciles()
		if err != nil {
			return err
		}
		if s.wires.cut() == 0 {
			return errors.New("the operator had no connection to the API server to cut: the measurement is broken")
		}
		if err := s.touch(ctx); err != nil {
			return err
		}
		return looked(ctx)
	})
}

// restarted kills the operator and starts another.
func (s *scenario) restarted(ctx context.Context) (Quiet, error) {
	return s.quiet(Restarted, func() error {
		looked, err := s.awaitReconciles()
		if err != nil {
			return err
		}
		s.operator.Kill()
		if err := s.run(); err != nil {
			return err
		}
		return looked(ctx)
	})
}

// upgraded kills the operator and starts one of another version, which has the same programs for hosts. It ends when all
// nodes have that version.
func (s *scenario) upgraded(ctx context.Context) (Quiet, error) {
	return s.quiet(Upgraded, func() error {
		s.operator.Kill()
		s.version = version + "-next"
		if err := s.run(); err != nil {
			return err
		}
		err := s.rig.WaitFor(ctx, "all nodes to have the version "+s.version, &v1alpha1.WindowsInstance{},
			func(ctx context.Context, reader client.Reader) (bool, error) {
				var instances v1alpha1.WindowsInstanceList
				if err := reader.List(ctx, &instances, client.InNamespace(s.rig.Namespace())); err != nil {
					return false, err
				}
				return !slices.ContainsFunc(instances.Items, func(i v1alpha1.WindowsInstance) bool {
					return i.Status.Version != s.version
				}), nil
			})
		if err != nil {
			return err
		}
		return s.settle(ctx)
	})
}

// quiet counts what happens because of something that should have no effect.
func (s *scenario) quiet(occasion Occasion, happen func() error) (Quiet, error) {
	before, err := s.counts()
	if err != nil {
		return Quiet{}, err
	}
	kinds := maps.Clone(s.audit.Kinds)
	begin := s.clock.Now()
	if err := happen(); err != nil {
		return Quiet{}, fmt.Errorf("%s, %s: %w", s, occasion, err)
	}
	seconds := s.clock.Since(begin).Seconds()
	after, err := s.counts()
	if err != nil {
		return Quiet{}, err
	}
	quiet := Quiet{
		Occasion: occasion, Hosts: s.hosts, Seconds: seconds, All: hostcost.Sum(hostcost.Differences(after.costs, before.costs)),
		Reconciles: after.reconciles - before.reconciles, Writes: after.writes - before.writes, WriteKinds: map[string]int{},
	}
	for kind, n := range s.audit.Kinds {
		if verb, _, _ := strings.Cut(kind, " "); (audit.Event{Verb: verb}).Writes() && n > kinds[kind] {
			quiet.WriteKinds[kind] = n - kinds[kind]
		}
	}
	return quiet, nil
}

// touched is an annotation that means nothing.
const touched = "lab.example.com/touched"

// touch changes all objects that lead to instances, in a way that must have no effect.
func (s *scenario) touch(ctx context.Context) error {
	var instances v1alpha1.WindowsInstanceList
	if err := s.rig.Client.List(ctx, &instances, client.InNamespace(s.rig.Namespace())); err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1",
		Kind: "Infrastructure"})
	infrastructure.SetName("cluster")
	objects := []client.Object{
		infrastructure,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.rig.Namespace(), Name: "cloud-private-key"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.rig.Namespace(), Name: "windows-instances"}},
	}
	for i := range instances.Items {
		objects = append(objects, &instances.Items[i])
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+touched+`":"yes"}}}`))
	for _, object := range objects {
		if err := s.rig.Client.Patch(ctx, object, patch); err != nil {
			return fmt.Errorf("annotate %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}
