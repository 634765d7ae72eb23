package disruption

import (
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestSummaries(t *testing.T) {
	upgrade := v1alpha1.CauseUpgrade
	all := func(c *disruptionCase) {
		for i := range c.Nodes {
			c.Nodes[i].Version = versionAfter
		}
	}
	for name, test := range map[string]struct {
		change         func(c *disruptionCase)
		nodes, updated int32
		failed         int32
		text           string
		stopped        string
		after          time.Duration
	}{
		"no nodes": {change: func(c *disruptionCase) {
			c.NodePool = NodePool{}
		}, text: "There are no Windows nodes in service."},
		"all nodes up to date": {change: all, nodes: 9, updated: 9, text: "9 of 9 nodes have version 12.1.0."},
		"a host that is gone":  {change: func(c *disruptionCase) { all(c); c.findNode("h1").Gone, c.findNode("h1").Version = true, versionBefore }, nodes: 8, updated: 8, text: "8 of 8 nodes have version 12.1.0."},
		"one that is upgraded": {change: func(c *disruptionCase) { c.markCanariesVerified(); c.addDisruption("h1", upgrade, 0) }, nodes: 9, updated: 3, text: "3 of 9 nodes have version 12.1.0. Node node-h1 (Hosts) is being upgraded (since 2026-11-21 12:00 UTC). 5 wait.", after: 30 * time.Minute},
		"one that is replaced": {change: func(c *disruptionCase) { c.markCanariesVerified(); c.addReplacement("a1", 10*time.Minute) }, nodes: 8, updated: 3, text: "3 of 8 nodes have version 12.1.0. Node node-a1 (MachineSet/a) is being replaced (since 2026-11-21 11:50 UTC). 5 wait.", after: 20 * time.Minute},
		"one that has failed":  {change: func(c *disruptionCase) { c.markCanariesVerified(); c.setFailure("h1", v1alpha1.ReasonChangeFailed) }, nodes: 9, updated: 3, failed: 1, text: "3 of 9 nodes have version 12.1.0. Failed: node-h1."},
		"one that did not come back": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.addDisruption("h1", upgrade, time.Hour)
			c.breakNode("h1", time.Hour)
		}, nodes: 9, updated: 3, failed: 1,
			text: "3 of 9 nodes have version 12.1.0. Failed: node-h1."},
		"one that was not made again": {change: func(c *disruptionCase) { c.markCanariesVerified(); c.addReplacement("a1", time.Hour) }, nodes: 8, updated: 3, failed: 1, text: "Failed: node-a1. 5 wait. MachineSet a lacks 1 of its 3 Machines"},
		"a shut window":               {change: func(c *disruptionCase) { c.settings, _ = Parse(openAt("0 13 * * *", time.Hour, "")) }, nodes: 9, text: "0 of 9 nodes have version 12.1.0. 9 wait. No maintenance window is open. The next one opens at 2026-11-21 13:00 UTC", after: time.Hour},
		"a canary in its soak": {change: func(c *disruptionCase) {
			c.settings.CanarySoak = time.Hour
			c.findNode("h1").Version, c.findNode("h1").Since = versionAfter, noon.Add(-time.Minute)
		}, nodes: 9, updated: 1, text: "8 wait. Node node-h1 (Hosts) is the first", after: 59 * time.Minute},
		"a canary that has failed": {change: func(c *disruptionCase) { c.setFailure("h1", v1alpha1.ReasonChangeFailed) }, nodes: 9, failed: 1, stopped: v1alpha1.ReasonCanaryFailed,
			text: "0 of 9 nodes have version 12.1.0. Failed: node-h1. The first node with version 12.1.0 has failed"},
		"a canary of one pool that has failed": {change: func(c *disruptionCase) {
			c.findNode("a1").Version = versionAfter
			c.setFailure("h1", v1alpha1.ReasonChangeFailed)
		}, nodes: 9, updated: 1, failed: 1, text: "Failed: node-h1. 7 wait. The first"},
		"other settings of which the first node is given": {change: func(c *disruptionCase) { settingsChange(c); c.addDisruption("h1", v1alpha1.CauseConfiguration, 0) }, nodes: 9, updated: 9,
			text: "9 of 9 nodes have version 12.1.0. 9 of them do not have the current settings of the cluster yet. Node node-h1 (Hosts) is being reconfigured (since 2026-11-21 12:00 UTC). 8 wait.", after: 30 * time.Minute},
		"other settings that a part of the nodes has": {change: func(c *disruptionCase) { settingsChange(c); c.setDesiredSettings("h1", "a1") }, nodes: 9, updated: 9, text: "7 of them do not have the current settings of the cluster yet."},
		"other settings with which the first node has failed": {change: func(c *disruptionCase) { settingsChange(c); c.failedSettings("h1") }, nodes: 9, updated: 9, failed: 1, stopped: v1alpha1.ReasonCanaryFailed,
			text: "Failed: node-h1. The first node with the changed settings of kubelet has failed, so no other node is changed. Node node-h1 (Hosts) has failed: the kubelet does not come up."},
		"settings that have failed, to an operator that has just started": {change: func(c *disruptionCase) {
			settingsChange(c)
			c.failedSettings("h1")
			c.request.Configuration = ""
		}, nodes: 9, updated: 9, failed: 1, stopped: v1alpha1.ReasonCanaryFailed, text: "Failed: node-h1. The first node with the changed settings of kubelet has failed"},
		"settings of which no node has told": {change: func(c *disruptionCase) {
			all(c)
			c.request.Configuration = settingsAfter
		}, nodes: 9, updated: 9, text: "9 of 9 nodes have version 12.1.0. 9 of them do not have the current settings of the cluster yet."},
		"a pause":                          {change: func(c *disruptionCase) { c.settings.Paused = true }, nodes: 9, stopped: v1alpha1.ReasonDisruptionsPaused, text: "0 of 9 nodes have version 12.1.0. WindowsDisruptionPolicy cluster is paused"},
		"a pause with nothing to do":       {change: func(c *disruptionCase) { all(c); c.settings.Paused = true }, nodes: 9, updated: 9, stopped: v1alpha1.ReasonDisruptionsPaused, text: "is paused"},
		"a policy that cannot be followed": {change: func(c *disruptionCase) { c.settings.Invalid = "spec.x: wrong" }, nodes: 9, stopped: v1alpha1.ReasonDisruptionPolicyInvalid, text: "spec.x: wrong. Correct it."},
		"a failure that stops all": {change: func(c *disruptionCase) {
			c.markCanariesVerified()
			c.settings.StopOnFailure = true
			c.setFailure("h1", v1alpha1.ReasonChangeFailed)
		}, nodes: 9, updated: 3, failed: 1, stopped: v1alpha1.ReasonStoppedOnFailure, text: "stopOnFailure"},
		"a failure of the last that stops the rest": {change: func(c *disruptionCase) {
			all(c)
			c.settings.StopOnFailure = true
			c.setFailure("h1", v1alpha1.ReasonChangeFailed)
		}, nodes: 9, updated: 9, failed: 1, stopped: v1alpha1.ReasonStoppedOnFailure, text: "stopOnFailure"},
	} {
		t.Run("the summary tells of "+name, func(t *testing.T) {
			c := newDisruptionCase()
			test.change(c)
			got := Summarize(c.NodePool, c.settings, versionAfter, c.request.Configuration, noon)
			if got.Nodes != test.nodes || got.Updated != test.updated || got.Failed != test.failed || !strings.Contains(got.Text, test.text) || got.After != test.after {
				t.Errorf("got %+v, want %+v", got, test)
			}
			if got.Stopped != (test.stopped != "") || got.Reason != test.stopped || (got.Message == "") != (test.stopped == "") {
				t.Errorf("got %+v, want it stopped for %q", got, test.stopped)
			}
			if strings.Contains(got.Text, "..") || strings.Contains(got.Text, "%!") || strings.Contains(got.Text, "\n") {
				t.Error(got.Text)
			}
		})
	}
}

func TestUpgradeable(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(c *disruptionCase)
		check   string
		message string
		after   time.Duration
	}{
		"the operator may be upgraded when nothing happens": {},
		"it may not while a node is disturbed": {change: func(c *disruptionCase) {
			c.addDisruption("h1", v1alpha1.CauseReboot, 20*time.Minute)
			c.addReplacement("a1", 10*time.Minute)
		}, check: "DisruptionInProgress", message: "or at 2026-11-21 12:20 UTC at the latest.", after: 10 * time.Minute},
		"it may when a node is disturbed for too long": {change: func(c *disruptionCase) {
			c.addDisruption("h1", v1alpha1.CauseUpgrade, time.Hour)
			c.breakNode("h1", time.Hour)
		}},
		"it may when a Machine is not made again": {change: func(c *disruptionCase) {
			c.addReplacement("a1", time.Hour)
		}},
		"it may when a node has failed": {change: func(c *disruptionCase) {
			c.setFailure("h1", v1alpha1.ReasonChangeFailed)
			c.settings.StopOnFailure = true
		}},
		"it may in a pause": {change: func(c *disruptionCase) {
			c.settings.Paused = true
		}},
		"it may by a policy that cannot be followed": {change: func(c *disruptionCase) {
			c.settings.Invalid = "x"
		}},
		"it may when the host is gone that was changed": {change: func(c *disruptionCase) {
			c.addDisruption("h1", v1alpha1.CauseReboot, 0)
			c.findNode("h1").Gone = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDisruptionCase()
			if test.change != nil {
				test.change(c)
			}
			got := Upgradeable(c.NodePool, c.settings, noon)
			if got.Check != test.check || got.Allowed != (test.check == "") || got.After != test.after ||
				!strings.Contains(got.Message, test.message) {
				t.Errorf("got %+v, want %+v", got, test)
			}
		})
	}
}
