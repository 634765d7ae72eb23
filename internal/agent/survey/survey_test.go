package survey

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestEventsThatMayHoldSecretsOfOthersAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		source   string
		id       uint32
		reported bool
	}{
		"of the agent":                             {nodespec.ServiceAgent, 2, true},
		"of a service that has ended":              {"Service Control Manager", 7034, true},
		"of a restart":                             {"User32", 1074, true},
		"not of a new service and its command":     {"Service Control Manager", 7045, false},
		"not of a program that is no part of ours": {"Some Database", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := concernsNodes(host.Event{Source: c.source, ID: c.id}); got != c.reported {
				t.Errorf("it is reported: %t", got)
			}
		})
	}
}
