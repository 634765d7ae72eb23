package disruption

import (
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// The current and the desired settings of the nodes in settingsChange.
const (
	settingsBefore = "containerd=0c kubelet=01"
	settingsAfter  = "containerd=0c kubelet=02"
)

// settingsChange sets up nodes of one version that need new settings.
func settingsChange(c *disruptionCase) {
	for i := range c.Nodes {
		c.Nodes[i].Version, c.Nodes[i].Configuration = versionAfter, settingsBefore
	}
	c.setRequest("h1", v1alpha1.CauseConfiguration)
	c.request.Configuration = settingsAfter
}

// setDesiredSettings sets the desired settings on nodes.
func (c *disruptionCase) setDesiredSettings(instances ...string) {
	for _, instance := range instances {
		c.findNode(instance).Configuration = settingsAfter
	}
}

func (c *disruptionCase) failedSettings(instance string) {
	c.setFailure(instance, v1alpha1.ReasonChangeFailed)
	c.findNode(instance).Failure.Cause, c.findNode(instance).Failure.ConfigurationDigest = v1alpha1.CauseConfiguration, settingsAfter
}

// addReconfiguration adds an entry for a node that is being reconfigured.
func (c *disruptionCase) addReconfiguration(instance, configuration string, lasting time.Duration) *v1alpha1.Disruption {
	d := c.addDisruption(instance, v1alpha1.CauseConfiguration, lasting)
	d.ConfigurationDigest = configuration
	return d
}

func TestCanary_NewSettingsVerifiedOnOneNode(t *testing.T) {
	configure := v1alpha1.CauseConfiguration
	many := func(c *disruptionCase) {
		settingsChange(c)
		c.settings.MaxUnavailable, c.settings.CanarySoak = Limit{Number: 9}, time.Hour
	}
	// first sets up a node that has the new settings and has been Ready for the given time.
	first := func(c *disruptionCase, instance string, ready time.Duration) {
		many(c)
		c.setDesiredSettings(instance)
		c.findNode(instance).Since = noon.Add(-ready)
	}
	failed := func(c *disruptionCase) { many(c); c.failedSettings("a1") }
	runDisruptionTests(t, map[string]disruptionTest{
		"the first node of all goes": {change: many},
		"the others wait for the first, in whatever pool": {change: func(c *disruptionCase) { many(c); c.addReconfiguration("a1", settingsAfter, 0) },
			check: "CanarySoaking", message: "Node node-a1 (MachineSet/a) is being reconfigured (since 2026-11-21 12:00 UTC), as the first node with the changed settings of kubelet. Other nodes follow when it has been Ready for 1h.", after: 30 * time.Minute},
		"the others wait until it was Ready for long enough": {change: func(c *disruptionCase) { first(c, "a1", 20*time.Minute) },
			check: "CanarySoaking", message: "Node node-a1 (MachineSet/a) is the first node with the changed settings of kubelet, and must remain Ready until 2026-11-21 12:40 UTC before other nodes follow.", after: 40 * time.Minute},
		"the others wait when it is not Ready any more": {change: func(c *disruptionCase) { first(c, "a1", 20*time.Minute); c.findNode("a1").Ready = false },
			check: "CanarySoaking", message: "not been Ready since 2026-11-21 11:40 UTC", after: 10 * time.Minute},
		"the others do not follow when it is not Ready past the deadline": {change: func(c *disruptionCase) { first(c, "a1", 40*time.Minute); c.findNode("a1").Ready = false },
			check: "CanaryFailed", message: "Node node-a1 (MachineSet/a) has these settings, but has not been Ready since"},
		"the others stay as they are when the first has failed": {change: failed, check: "CanaryFailed",
			message: "The first node with the changed settings of kubelet has failed, so no other node is changed. Node node-a1 (MachineSet/a) has failed: the kubelet does not come up. Correct the settings; or, if the node is at fault, fix it and set the annotation windowsmachineconfig.openshift.io/retry on its WindowsInstance."},
		"the others stay as they are when the first did not come back": {change: func(c *disruptionCase) {
			many(c)
			c.addReconfiguration("a1", settingsAfter, time.Hour)
			c.breakNode("a1", time.Hour)
		}, check: "CanaryFailed", message: "Node node-a1 (MachineSet/a) is being reconfigured (since 2026-11-21 11:00 UTC), and did not recover by 2026-11-21 11:30 UTC."},
		"another goes first when the settings were corrected":     {change: func(c *disruptionCase) { failed(c); c.request.Configuration = "containerd=0c kubelet=03" }},
		"one that has failed is tried again":                      {change: func(c *disruptionCase) { failed(c); c.failedSettings("h1") }},
		"another goes first when the pods of one do not leave it": {change: func(c *disruptionCase) { failed(c); c.findNode("a1").Failure.DrainTimedOut = true }},
		"the others follow a failure without known settings":      {change: func(c *disruptionCase) { failed(c); c.findNode("a1").Failure.ConfigurationDigest = "" }},
		"the first of another pool follows the first of all":      {change: func(c *disruptionCase) { first(c, "a1", time.Hour) }},
		"the second of another pool waits for the first of that": {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.addReconfiguration("h2", settingsAfter, 0) },
			check: "CanarySoaking", message: "node-h2", after: 30 * time.Minute},
		"a failure of the first of a pool stops that pool":        {change: func(c *disruptionCase) { first(c, "a1", time.Hour); c.failedSettings("h2") }, check: "CanaryFailed", message: "node-h2"},
		"a failure later than the first stops nothing":            {change: func(c *disruptionCase) { many(c); c.setDesiredSettings("h3"); c.failedSettings("h2") }},
		"settings that nobody knows are like any others":          {change: func(c *disruptionCase) { failed(c); c.findNode("h1").Configuration = "" }, check: "CanaryFailed", message: "with the current settings of the cluster has failed"},
		"a node is no first with the settings that it has":        {change: func(c *disruptionCase) { failed(c); c.setDesiredSettings("h1"); c.findNode("h1").Since = noon }},
		"a node goes when nobody knows what it is to have":        {change: func(c *disruptionCase) { failed(c); c.request.Configuration = "" }},
		"a repair does not wait for settings that have failed":    {change: func(c *disruptionCase) { failed(c); c.setRequest("h1", v1alpha1.CauseRepair); c.breakNode("h1", 0) }},
		"a removal does not wait for settings that have failed":   {change: func(c *disruptionCase) { failed(c); c.setRequest("h1", v1alpha1.CauseRemoval) }},
		"a restart does not wait for settings that have failed":   {change: func(c *disruptionCase) { failed(c); c.setRequest("h1", v1alpha1.CauseReboot) }},
		"another key does not wait for settings that have failed": {change: func(c *disruptionCase) { failed(c); c.setRequest("h1", v1alpha1.CauseKeyChange) }},
		"a restart goes on with settings only when these are proven": {change: func(c *disruptionCase) { failed(c); c.addDisruption("h1", v1alpha1.CauseReboot, 0) },
			check: "CanaryFailed"},
		"a change of settings goes on": {change: func(c *disruptionCase) { failed(c); c.addReconfiguration("h1", settingsAfter, 0) }, message: "already"},
		"a change goes on with other settings only when these are proven": {change: func(c *disruptionCase) { failed(c); c.addReconfiguration("h1", "containerd=0c kubelet=00", 0) },
			check: "CanaryFailed"},
		"a host that is being changed gets the present settings": {change: func(c *disruptionCase) {
			failed(c)
			c.request.HostChanged = true
			c.addReconfiguration("h1", "containerd=0c kubelet=00", 0)
		}, message: "already"},
		"the pause that holds an upgrade holds settings": {change: func(c *disruptionCase) { many(c); c.settings.Paused = true }, check: "PolicyPaused"},
		"an upgrade waits for the first with the settings that it brings": {change: func(c *disruptionCase) {
			first(c, "a1", time.Hour)
			c.markCanariesVerified() // with the previous settings
			c.findNode("h1").Version = versionBefore
			c.setRequest("h1", v1alpha1.CauseUpgrade)
			c.addReconfiguration("h2", settingsAfter, 0)
		}, check: "CanarySoaking", message: "as the first node with version 12.1.0 with the current settings of the cluster", after: 30 * time.Minute},
		"an upgrade does not bring settings with which the first has failed": {change: func(c *disruptionCase) {
			failed(c)
			c.findNode("h1").Version = versionBefore
			c.setRequest("h1", v1alpha1.CauseUpgrade)
		}, check: "CanaryFailed", message: "with version 12.1.0 with the current settings of the cluster has failed"},
		"settings do not follow an upgrade that has failed with them": {change: func(c *disruptionCase) {
			failed(c)
			c.findNode("a1").Failure.Cause = v1alpha1.CauseUpgrade
		}, check: "CanaryFailed"},
		"an upgrade to a version that has failed does not go on for other settings": {change: func(c *disruptionCase) {
			many(c)
			for i := range c.Nodes {
				c.Nodes[i].Version = versionBefore
			}
			c.setRequest("h1", v1alpha1.CauseUpgrade)
			c.setFailure("a1", v1alpha1.ReasonChangeFailed)
		}, check: "CanaryFailed", message: "with version 12.1.0 has failed"},
		"settings under a version are not those under another": {change: func(c *disruptionCase) {
			failed(c)
			c.findNode("a1").Failure.Version = versionBefore
			c.setRequest("h1", configure)
		}},
	})
}

// If the entry of a reboot had settings, the entry could continue as a change of settings regardless of the canary's
// state.
func TestConfigurationOf_EmptyWithoutNewSettings(t *testing.T) {
	for cause, want := range map[v1alpha1.DisruptionCause]string{
		v1alpha1.CauseUpgrade: settingsAfter, v1alpha1.CauseConfiguration: settingsAfter, v1alpha1.CauseRepair: settingsAfter,
		v1alpha1.CauseReboot: "", v1alpha1.CauseKeyChange: "", v1alpha1.CauseRemoval: "",
	} {
		if got := ConfigurationOf(Request{Cause: cause, Configuration: settingsAfter}); got != want {
			t.Errorf("%s: %q, want %q", cause, got, want)
		}
	}
}
