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

// blockedJobs are jobs of all kinds; with the race detector, only jobs that wait and end differently.
func blockedJobs() []blockedJob {
	jobs := []blockedJob{
		{kind: hostjobs.KindConnect, setUp: newJoiningTrial, isDone: isInServiceAgain},
		{kind: hostjobs.KindFacts, verb: "facts", setUp: newJoiningTrial, isDone: isInServiceAgain, timeout: 20 * time.Minute},
		{kind: hostjobs.KindSign, setUp: newJoiningTrial, isDone: isInServiceAgain},
		{kind: hostjobs.KindVerify, verb: "verify", setUp: newJoiningTrial, isDone: isInServiceAgain, timeout: 30 * time.Minute},
		{kind: hostjobs.KindPlan, verb: "plan", setUp: newChangingTrial, isDone: hasChanged, timeout: 30 * time.Minute},
		{kind: hostjobs.KindDrain, setUp: newChangingTrial, isDone: hasChanged},
		{kind: hostjobs.KindApply, verb: "apply", changes: true, setUp: newChangingTrial, isDone: hasChanged, timeout: 150 * time.Minute},
		{kind: hostjobs.KindCommit, verb: "commit", changes: true, setUp: newChangingTrial, isDone: hasChanged, timeout: 20 * time.Minute},
		{kind: hostjobs.KindReboot, verb: "reboot", changes: true, setUp: newRestartingTrial, isDone: hasRestarted, timeout: 5 * time.Minute},
		{kind: hostjobs.KindRenew, verb: "renew", changes: true, setUp: newRenewingTrial, isDone: hasRenewed, timeout: 20 * time.Minute},
		{kind: hostjobs.KindRollback, verb: "rollback", changes: true, setUp: newFailedTrial, isDone: hasRolledBack, timeout: 150 * time.Minute},
		{kind: hostjobs.KindFindRemains, setUp: newLeavingTrial, isDone: hasLeft},
		{kind: hostjobs.KindRestore, verb: "remove", changes: true, setUp: newLeavingTrial, isDone: hasLeft, timeout: 150 * time.Minute},
		{kind: hostjobs.KindResolve, setUp: newNamedTrial, isDone: isInServiceAgain},
	}
	if testing.Short() {
		jobs = slices.DeleteFunc(jobs, func(job blockedJob) bool {
			return !slices.Contains([]hostjobs.Kind{hostjobs.KindConnect, hostjobs.KindDrain, hostjobs.KindApply, hostjobs.KindRestore}, job.kind)
		})
	}
	return jobs
}

func newJoiningTrial(t *testing.T) (*trial, *agentHost) {
	x, h, _ := hostToJoin(t, "None")
	return x, h
}

func isInServiceAgain(s *standstill) bool {
	instance := s.instanceOrNil()
	return instance != nil && instance.Status.Summary == v1alpha1.ReasonReady && s.Jobs.CountRunning() == 0
}

// newChangingTrial returns a trial with a change of a node, and pods that must leave.
func newChangingTrial(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.addPod("web")
	x.allowEvictions(nil)
	x.facts.Kubelet.ClusterDomain = "other.local"
	return x, h
}

// specDigest returns the digest of the desired NodeSpec.
func (x *trial) specDigest() string {
	x.t.Helper()
	return x.desiredSpec().Digest()
}

// desiredSpec returns the desired NodeSpec.
func (x *trial) desiredSpec() nodespec.NodeSpec {
	x.t.Helper()
	s := x.newScope(x.getInstance())
	s.Cluster = *x.facts
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet(trialSubnet))
	if err != nil {
		x.t.Fatal(err)
	}
	return spec
}

func hasChanged(s *standstill) bool {
	instance := s.instanceOrNil()
	return isInServiceAgain(s) && instance.Status.SpecDigest == s.specDigest() && !s.getNode().Spec.Unschedulable
}

func newRestartingTrial(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.changeNode(requestReboot)
	return x, h
}

func hasRestarted(s *standstill) bool {
	return isInServiceAgain(s) && !nodes.IsRebootRequested(s.getNode()) && !s.getNode().Spec.Unschedulable
}

func newRenewingTrial(t *testing.T) (*trial, *agentHost) {
	x := newTrial(t)
	h, _ := x.onAzureAs(listedInstance(), month)
	x.enableSigning(month)
	x.untilDue()
	return x, h
}

func hasRenewed(s *standstill) bool {
	return s.Jobs.CountRunning() == 0 && s.instanceOrNil().Status.Certificates[0].NotAfter.After(noon.Add(month))
}

func newLeavingTrial(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.changeSpec(x.getInstance(), setRemoved)
	return x, h
}

func hasLeft(s *standstill) bool { return s.instanceOrNil() == nil && s.getNode() == nil }

func newNamedTrial(t *testing.T) (*trial, *agentHost) {
	x, h, _ := nodeInService(t, "None")
	x.changeSpec(x.getInstance(), func(i *v1alpha1.WindowsInstance) { i.Spec.Address = "win.example.com" })
	lastReachedAddress := x.getInstance().Status.Host.LastReachedAddress
	x.LookUp = func(context.Context, string) ([]string, error) { return []string{lastReachedAddress}, nil }
	return x, h
}

var formerProgram = []byte("wicd.exe of a former release")

// newFailedTrial returns a host with a failed change that can be rolled back.
func newFailedTrial(t *testing.T) (*trial, *agentHost) {
	x := newUpgradeTrial(t, v1alpha1.UpgradeInPlace, true)
	gate := openGate()
	x.Gate, gate.held = gate, []string{machine}
	h := x.withAgent()
	s := x.newRespondingScope(nil)
	spec, err := x.newDependencies().specs.Build(s, nodeWithSubnet(trialSubnet))
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
	h.storeSpec(spec)
	drive := h.machine.Drive()
	err = errors.Join(drive.MkdirAll(strings.TrimSuffix(path, `\`+nodespec.AgentProgram)), drive.WriteFile(path, formerProgram),
		drive.WriteFile(nodespec.RollbackTargetPath, document), drive.WriteFile(nodespec.RollbackAppliedPath, applied))
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

// hasRolledBack reports whether a rollback was repeated on the host. The host has no programs that would pass
// checks.
func hasRolledBack(s *standstill) bool {
	return slices.Contains(s.host.agentCommands()[s.verbs:], "rollback") && s.Jobs.CountRunning() == 0
}
