package upgrade

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// kills is the number of kills of the operator in one upgrade.
const kills = 20

// round is an upgrade to a release under faults of the operator. disrupt returns the operators that run afterward.
type round struct {
	name, release string
	disrupt       func(l lab, o *testenv.Operator, release string) []*testenv.Operator
}

// In spite of all faults of the operator during an upgrade, the budget is kept, and the upgrade completes. R-147,
//
func TestBudget_KeptDespiteOperatorFaults(t *testing.T) {
	checkBudgetRounds(t, []round{
		{"with an operator that is killed again and again", patch, lab.killRepeatedly},
		{"with two operators that fight for the lease", patch2, lab.runWithElection},
		{"with two operators of which none knows of the other", repaired, lab.runTwoOperators},
	})
}

// The same applies to faults of the API server.
func TestBudget_KeptDespiteAPIServerFaults(t *testing.T) {
	checkBudgetRounds(t, []round{
		{"with an API server that is restarted", patch, lab.restartAPIServer},
		{"with watches that tell everything seconds late", patch2, lab.runWithStaleCaches},
	})
}

func checkBudgetRounds(t *testing.T, rounds []round) {
	l := start(t, withMachines, testenv.Options{Hosts: testenv.Hosts(2), LinuxNodes: 1})
	running := []*testenv.Operator{l.startOperator(initial)}
	f := l.newReadyFleet(2, 2, 5)
	for _, round := range rounds {
		ok := t.Run(round.name, func(t *testing.T) {
			l := l.forSubtest(t)
			w := l.watchAvailability(f.workload)
			for _, o := range running[1:] {
				o.Kill()
			}
			running = round.disrupt(l, running[0], round.release)
			l.waitUntilUpgraded(round.release, f.nodeCount(), fleetTimeout)
			f.waitForPods(5)
			report := w.checkBudget(1, 4)
			if len(report.Disrupted) < f.nodeCount() {
				t.Errorf("only %v were disturbed", report.Disrupted)
			}
		})
		if !ok {
			return
		}
	}
}

// killRepeatedly kills the operator at random moments of the upgrade, and restarts it at once.
func (l lab) killRepeatedly(o *testenv.Operator, name string) []*testenv.Operator {
	l.Helper()
	seed := uint64(time.Now().UnixNano())
	l.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	o = l.upgradeOperator(o, name)
	for range kills {
		time.Sleep(200*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))) // a random moment
		o.Kill()
		o = l.startOperator(name)
	}
	return []*testenv.Operator{o}
}

// runWithElection runs two operators with leader election, and kills the leader during the upgrade.
func (l lab) runWithElection(o *testenv.Operator, name string) []*testenv.Operator {
	l.Helper()
	l.requireNoError(o.Stop())
	first := l.startOperator(name, enableElection)
	second := l.startOperator(name, enableElection)
	time.Sleep(5 * time.Second) // during the upgrade
	first.Kill()
	return []*testenv.Operator{second, l.startOperator(name, enableElection)}
}

// runTwoOperators runs two operators without leader election at the same time.
func (l lab) runTwoOperators(o *testenv.Operator, name string) []*testenv.Operator {
	l.Helper()
	l.requireNoError(o.Stop())
	return []*testenv.Operator{l.startOperator(name), l.startOperator(name)}
}

// restartAPIServer restarts the API server and its dependencies during the upgrade. An operator with leader election
// survives this, too.
func (l lab) restartAPIServer(o *testenv.Operator, name string) []*testenv.Operator {
	l.Helper()
	l.requireNoError(o.Stop())
	o = l.startOperator(name, func(c *operator.Config) { c.LeaderElection = true })
	for range 2 {
		time.Sleep(4 * time.Second) // during the upgrade of a node
		l.runWithTimeout(waitTimeout, func(ctx context.Context) error { return l.Cluster().Restart(ctx) })
		select {
		case <-o.Done():
			l.Fatal("the operator has ended because the API server was away")
		default:
		}
	}
	return []*testenv.Operator{o}
}

// runWithStaleCaches runs an operator with caches that are three seconds behind.
func (l lab) runWithStaleCaches(o *testenv.Operator, name string) []*testenv.Operator {
	l.Helper()
	adjust, err := l.StaleWatches(3 * time.Second)
	l.requireNoError(err)
	l.requireNoError(o.Stop())
	return []*testenv.Operator{l.startOperator(name, adjust)}
}

// enableElection enables leader election with a Lease that another operator can acquire soon.
func enableElection(c *operator.Config) {
	c.LeaderElection = true
	c.Election = operator.Election{Lease: 15 * time.Second, RenewDeadline: 10 * time.Second, Retry: 2 * time.Second}
}
