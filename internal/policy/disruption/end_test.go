package disruption

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestEnded(t *testing.T) {
	upgrade, reboot := v1alpha1.CauseUpgrade, v1alpha1.CauseReboot
	for name, test := range map[string]struct {
		change        func(c *disruptionCase)
		ended, failed bool
		reason        string
	}{
		"a change in place goes on": {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, time.Minute) }},
		"a change in place goes on while its node works": {change: func(c *disruptionCase) {
			c.addDisruption("h1", upgrade, time.Minute)
			c.findNode("h1").Version = versionAfter
		}},
		"a change in place goes on just before the deadline": {change: func(c *disruptionCase) {
			c.addDisruption("h1", reboot, 30*time.Minute-time.Second)
			c.breakNode("h1", 0)
		}},
		"a change has ended whose instance is gone":                       {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, 0); c.Nodes = c.Nodes[1:] }, ended: true, reason: "WindowsInstance h1 no longer exists."},
		"a change has ended whose instance was made anew":                 {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, 0); c.findNode("h1").UID = "new" }, ended: true, reason: "was recreated"},
		"a change has ended whose host is gone":                           {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, time.Hour); c.findNode("h1").Gone = true }, ended: true, reason: "host of WindowsInstance h1 no longer exists"},
		"a change that did not come back has failed, and stays as a note": {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, 30*time.Minute); c.breakNode("h1", 0) }, failed: true, reason: "Node node-h1 (Hosts) is not Ready. 30m have passed since 2026-11-21 11:30 UTC, so it is no longer counted."},
		"a change that nobody has ended has failed, and ends when its node works": {change: func(c *disruptionCase) { c.addDisruption("h1", reboot, time.Hour) },
			ended: true, failed: true, reason: "is Ready, but its change was not completed. 30m have passed"},
		"an upgrade that has not come about has failed, and ends when its node works": {change: func(c *disruptionCase) { c.addDisruption("h1", upgrade, time.Hour) },
			ended: true, failed: true, reason: "is Ready, but not at version 12.1.0."},
		"a failed change ends when its instance remembers the failure": {change: func(c *disruptionCase) {
			c.addDisruption("h1", upgrade, time.Hour)
			c.breakNode("h1", time.Hour)
			c.setFailure("h1", v1alpha1.ReasonRollbackIncomplete)
		}, ended: true, failed: true, reason: "has failed: the kubelet does not come up."},
		"a failure before the change is another one": {change: func(c *disruptionCase) {
			c.addDisruption("h1", upgrade, time.Hour)
			c.breakNode("h1", time.Hour)
			c.setFailure("h1", v1alpha1.ReasonRollbackIncomplete)
			c.findNode("h1").Failure.Time = metav1.NewTime(noon.Add(-2 * time.Hour))
		}, failed: true, reason: "is not Ready"},
		"a deadline of the policy counts": {change: func(c *disruptionCase) {
			c.settings.FailureDeadline = 2 * time.Hour
			c.addDisruption("h1", upgrade, time.Hour)
			c.breakNode("h1", 0)
		}},
		"a Machine goes on that is not made again yet":     {change: func(c *disruptionCase) { c.addReplacement("a1", time.Minute) }},
		"a Machine goes on whose deletion is not seen yet": {change: func(c *disruptionCase) { c.addDisruption("a1", upgrade, time.Minute).Machine = "a1" }},
		"a Machine goes on whose successor does not run":   {change: func(c *disruptionCase) { c.addReplacement("a1", time.Minute); c.findMachineSet("a").Missing = 0 }},
		"a Machine has ended when its set is whole": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Minute)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Running = 0, 3
		}, ended: true, reason: "All desired Machines of MachineSet/a"},
		"a Machine has ended when its set is made smaller": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Minute)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Replicas = 0, 2
		}, ended: true},
		"a Machine has ended when its set is to have none": {change: func(c *disruptionCase) { c.addReplacement("a1", 0); *c.findMachineSet("a") = MachineSet{Name: "a"} }, ended: true},
		"a Machine has ended when its set is gone":         {change: func(c *disruptionCase) { c.addReplacement("a1", time.Minute); c.MachineSets = c.MachineSets[1:] }, ended: true, reason: "MachineSet/a no longer exists."},
		"a Machine has failed that is not made again":      {change: func(c *disruptionCase) { c.addReplacement("a1", time.Hour) }, failed: true, reason: "Of the 3 Machines of MachineSet/a, 2 run with a node that is Ready. 30m"},
		"a Machine has failed that its pods keep": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Hour)
			c.findMachineSet("a").Leaving = []LeavingMachine{{"a9", ""}, {"a1", "could not drain machine: web/web-1 cannot be evicted."}}
		}, failed: true, reason: "Machine a1 is still being deleted: could not drain machine: web/web-1 cannot be evicted. 30m"},
		"a Machine has failed whose deletion says nothing": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Hour)
			c.findMachineSet("a").Leaving = []LeavingMachine{{"a1", ""}}
		}, failed: true, reason: "Machine a1 is still being deleted. 30m"},
		"a Machine has failed whose successor has failed": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Hour)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Failed = 0, 1
		}, failed: true},
		"a Machine has failed and ended that nobody deleted": {change: func(c *disruptionCase) { c.addDisruption("a1", upgrade, time.Hour).Machine = "a1" }, ended: true, failed: true, reason: "Machine a1 was not deleted. 30m"},
		"a failed Machine ends when its set is whole later": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Hour)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Running = 0, 3
		}, ended: true},
		"a Machine has ended though another one did not work before": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Minute)
			c.breakNode("a2", time.Hour)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Running = 0, 2
		}, ended: true},
		"a Machine has ended though the host of another one died meanwhile": {change: func(c *disruptionCase) {
			c.addReplacement("a1", 5*time.Minute)
			c.breakNode("a2", time.Minute)
			c.findNode("a2").Gone = true
			c.findMachineSet("a").Missing, c.findMachineSet("a").Running, c.findMachineSet("a").Failed = 0, 2, 1
		}, ended: true},
		"a Machine has ended though another one never came up": {change: func(c *disruptionCase) {
			c.addReplacement("a1", 5*time.Minute)
			c.findNode("a2").Version, c.findNode("a2").Since = versionAfter, noon.Add(-time.Minute)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Running, c.findMachineSet("a").Failed = 0, 2, 1
		}, ended: true, reason: "A replacement Machine of MachineSet/a is in service, and other Machines of it have failed."},
		"a Machine goes on while another one stopped to work meanwhile": {change: func(c *disruptionCase) {
			c.addReplacement("a1", 5*time.Minute)
			c.breakNode("a2", time.Minute)
			c.findMachineSet("a").Missing, c.findMachineSet("a").Running = 0, 2
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDisruptionCase()
			test.change(c)
			ended, failed, reason := Ended(c.Disruptions[0], c.NodePool, c.settings, noon)
			if ended != test.ended || failed != test.failed || !strings.Contains(reason, test.reason) || (reason == "") != (!ended && !failed) {
				t.Errorf("got ended %v, failed %v: %q; want %v, %v: %q", ended, failed, reason, test.ended, test.failed, test.reason)
			}
		})
	}
}

func TestSummarize_LongNotReadyNodeFailed(t *testing.T) {
	c := newDisruptionCase()
	c.markCanariesVerified()
	c.breakNode("h1", time.Hour)
	summary := Summarize(c.NodePool, c.settings, versionAfter, "", noon)
	if summary.Failed != 1 || !strings.Contains(summary.Text, "Failed: node-h1.") {
		t.Errorf("got %+v", summary)
	}
}

func TestDisruption_AbandonedIfNodeTakesPods(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(c *disruptionCase)
		lingers bool
	}{
		"when its node takes pods":             {func(*disruptionCase) {}, true},
		"not while its node takes no new pods": {func(c *disruptionCase) { c.findNode("h1").Cordoned = true }, false},
		"not while its node does not work":     {func(c *disruptionCase) { c.breakNode("h1", 0) }, false},
		"not when a Machine was deleted":       {func(c *disruptionCase) { c.Disruptions[0].Machine = "h1" }, false},
		"not when its instance is gone":        {func(c *disruptionCase) { c.Nodes = c.Nodes[1:] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDisruptionCase()
			c.addDisruption("h1", v1alpha1.CauseUpgrade, time.Minute)
			test.change(c)
			if IsLingering(c.Disruptions[0], c.NodePool) != test.lingers {
				t.Errorf("it lingers: %t", !test.lingers)
			}
		})
	}
	if IsAbandoned(noon, noon.Add(time.Minute-time.Second)) || !IsAbandoned(noon, noon.Add(time.Minute)) {
		t.Error("it is not abandoned after a minute")
	}
}
