package instance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent/state"
	"github.com/windows-machine-config/wmco/internal/controller/instance/hostjobs"
	"github.com/windows-machine-config/wmco/internal/controller/instance/nodes"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// standingJobs are jobs of all kinds; with the race detector, only jobs that wait and end differently.
func standingJobs() []standingJob {
	jobs := []standingJob{
		{kind: hostjobs.KindConnect, life: joiningLife, lived: inServiceAgain},
		{kind: hostjobs.KindFacts, verb: "facts", life: joiningLife, lived: inServiceAgain, limit: 20 * time.Minute},
		{kind: hostjobs.KindSign, life: joiningLife, lived: inServiceAgain},
		{kind: hostjobs.KindVerify, verb: "verify", life: joiningLife, lived: inServiceAgain, limit: 30 * time.Minute},
		{kind: hostjobs.KindPlan, verb: "plan", life: changingLife, lived: changed, limit: 30 * time.Minute},
		{kind: hostjobs.KindDrain, life: changingLife, lived: changed},
		{kind: hostjobs.KindApply, verb: "apply", changes: true, life: changingLife, lived: changed, limit: 150 * time.Minute},
		{kind: hostjobs.KindCommit, verb: "commit", changes: true, life: changingLife, lived: changed, limit: 20 * time.Minute},
		{kind: hostjobs.KindReboot, verb: "reboot", changes: true, life: restartingLife, lived: restarted, limit: 5 * time.Minute},
		{kind: hostjobs.KindRenew, verb: "renew", changes: true, life: renewingLife, lived: renewed, limit: 20 * time.Minute},
		{kind: hostjobs.KindRollback, verb: "rollback", changes: true, life: failedLife, lived: rolledBack, limit: 150 * time.Minute},
		{kind: hostjobs.KindFindRemains, life: leavingLife, lived: left},
		{kind: hostjobs.KindGiveBack, verb: "remove", changes: true, life: leavingLife, lived: left, limit: 150 * time.Minute},
		{kind: hostjobs.KindResolve, life: namedLife, lived: inServiceAgain},
	}
	if testing.Short() {
		jobs = slices.DeleteFunc(jobs, func(job standingJob) bool {
			return !slices.Contains([]hostjobs.Kind{hostjobs.KindConnect, hostjobs.KindDrain, hostjobs.KindApply, hostjobs.KindGiveBack}, job.kind)
		})
	}
	return jobs
}

func joiningLife(t *testing.T) (*trial, *agentHost) {
	x, h, _ := hostToJoin(t, "None")
	return x, h
}

func inServiceAgain(s *standstill) bool {
	instance := s.instanceOrNil()
	return instance != nil && instance.Status.Summary == v1alpha1.ReasonReady && s.Jobs.Running() == 0
}

// changingLife returns a trial with a change of a node, and pods that must leave.
func changingLife(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.addPod("web")
	x.evicts(nil)
	x.facts.Kubelet.ClusterDomain = "other.local"
	return x, h
}

// digest returns the digest of the desired NodeSpec.
func (x *trial) digest() string {
	x.t.Helper()
	return x.spec().Digest()
}

// spec returns the desired NodeSpec.
func (x *trial) spec() nodespec.NodeSpec {
	x.t.Helper()
	s := x.scope(x.instance())
	s.Cluster = *x.facts
	spec, err := x.rooms().specs.Of(s, nodeWithSubnet(trialSubnet))
	if err != nil {
		x.t.Fatal(err)
	}
	return spec
}

func changed(s *standstill) bool {
	instance := s.instanceOrNil()
	return inServiceAgain(s) && instance.Status.SpecDigest == s.digest() && !s.node().Spec.Unschedulable
}

func restartingLife(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.changeNode(wantReboot)
	return x, h
}

func restarted(s *standstill) bool {
	return inServiceAgain(s) && !nodes.RebootWanted(s.node()) && !s.node().Spec.Unschedulable
}

func renewingLife(t *testing.T) (*trial, *agentHost) {
	x := newTrial(t)
	h, _ := x.onAzureAs(listed(), month)
	x.signs(month)
	x.untilDue()
	return x, h
}

func renewed(s *standstill) bool {
	return s.Jobs.Running() == 0 && s.instanceOrNil().Status.Certificates[0].NotAfter.After(noon.Add(month))
}

func leavingLife(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.change(x.instance(), remove)
	return x, h
}

func left(s *standstill) bool { return s.instanceOrNil() == nil && s.node() == nil }

func namedLife(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.change(x.instance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Address = "win.example.com" })
	lastReachedAddress := x.instance().Status.Host.LastReachedAddress
	x.LookUp = func(context.Context, string) ([]string, error) { return []string{lastReachedAddress}, nil }
	return x, h
}

var formerProgram = []byte("wicd.exe of a former release")

// failedLife returns a host with a failed change that can be rolled back.
func failedLife(t *testing.T) (*trial, *agentHost) {
	x := upgraded(t, v1alpha1.UpgradeInPlace, true)
	gate := openGate()
	x.Gate, gate.held = gate, []string{machine}
	h := x.withAgent()
	s := x.answered(nil)
	spec, err := x.rooms().specs.Of(s, nodeWithSubnet(trialSubnet))
	if err != nil {
		t.Fatal(err)
	}
	former := spec
	former.Instance = "former"
	document, err := former.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := nodespec.AgentPath(plan.Digest(formerProgram))
	applied, err := json.Marshal(state.Describe(former, document, plan.Digest(formerProgram)))
	if err != nil {
		t.Fatal(err)
	}
	h.has(spec)
	drive := h.machine.Drive()
	err = errors.Join(drive.MkdirAll(strings.TrimSuffix(path, `\`+nodespec.AgentProgram)), drive.WriteFile(path, formerProgram),
		drive.WriteFile(nodespec.FallbackPath, document), drive.WriteFile(nodespec.FallbackAppliedPath, applied))
	if err != nil {
		t.Fatal(err)
	}
	x.forgetHostKey()
	x.changeStatus(func(status *v1alpha1.WindowsInstanceStatus) {
		status.SpecDigest = ""
		status.FailedChange = &v1alpha1.FailedChange{
			Cause: v1alpha1.CauseUpgrade, Version: x.Version, SpecDigest: spec.Digest(), PreviousDigest: former.Digest(),
			Reason: v1alpha1.ReasonChecksFailed, Time: metav1.NewTime(x.clock.Now()), Attempts: 1,
		}
	})
	return x, h
}

// rolledBack reports whether a rollback was repeated on the host. The host has no programs that would pass
// checks.
func rolledBack(s *standstill) bool {
	return slices.Contains(s.host.execs()[s.verbs:], "rollback") && s.Jobs.Running() == 0
}
