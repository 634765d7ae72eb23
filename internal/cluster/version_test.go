package cluster

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
)

func TestOldestVersion(t *testing.T) {
	type history = []configv1.UpdateHistory
	completed := func(version string) configv1.UpdateHistory {
		return configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: version}
	}
	partial := func(version string) configv1.UpdateHistory {
		return configv1.UpdateHistory{State: configv1.PartialUpdate, Version: version}
	}
	for name, c := range map[string]struct {
		history history
		want    string
	}{
		"a completed version":                         {history{completed("5.0.3")}, "5.0.3"},
		"an upgrade in progress":                      {history{partial("5.1.0"), completed("5.0.3")}, "5.0.3"},
		"a completed upgrade":                         {history{completed("5.1.0"), completed("5.0.3")}, "5.1.0"},
		"a downgrade in progress":                     {history{partial("5.0.9"), completed("5.1.0"), completed("5.0.3")}, "5.0.9"},
		"a second target during a downgrade":          {history{partial("5.0.10"), partial("5.0.9"), completed("5.1.0")}, "5.0.9"},
		"an upgrade that was interrupted and resumed": {history{partial("5.1.0"), partial("5.0.4"), completed("5.0.3")}, "5.0.3"},
		"versions with two digits":                    {history{partial("4.10.1"), completed("4.9.30")}, "4.9.30"},
		"an unreadable target":                        {history{partial("latest"), completed("5.0.3")}, "5.0.3"},
		"an unreadable completed version":             {history{partial("5.1.0"), completed("latest")}, "latest"},
		"an installation in progress":                 {history{partial("5.0.3")}, "5.0.3"},
		"an upgrade of an incomplete installation":    {history{partial("5.1.0"), partial("5.0.3")}, "5.0.3"},
		"no history":                                  {nil, "5.0.4"},
	} {
		t.Run(name, func(t *testing.T) {
			status := configv1.ClusterVersionStatus{History: c.history}
			status.Desired.Version = "5.0.4"
			if got := oldestVersion(status); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
