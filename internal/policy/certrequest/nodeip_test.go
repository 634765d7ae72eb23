package certrequest

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

//
func TestChooseNodeIP(t *testing.T) {
	cluster := nodespec.Cluster{}
	cluster.Network.HybridClusterNetworks = []string{"10.132.0.0/14"}
	for name, c := range map[string]struct {
		choice NodeIPChoice
		want   string
	}{
		"a node in service keeps it when Windows lists another one first": {NodeIPChoice{Known: []string{"10.0.0.1"},
			Reached: "10.0.0.2", Reported: []string{"10.0.0.2", "10.0.0.1"}}, "10.0.0.1"},
		"a node in service gets another one when its host has lost it": {NodeIPChoice{Known: []string{"10.0.0.1"},
			Reached: "10.0.0.3", Reported: []string{"10.0.0.2", "10.0.0.3"}}, "10.0.0.3"},
		"the record of the operator counts for more than the Node": {NodeIPChoice{Known: []string{"10.0.0.1", "10.0.0.2"},
			Reported: []string{"10.0.0.2", "10.0.0.1"}}, "10.0.0.1"},
		"an adopted node without a record keeps that of its Node": {NodeIPChoice{Known: []string{"", "10.0.0.2"},
			Reached: "10.0.0.1", Reported: []string{"10.0.0.1", "10.0.0.2"}}, "10.0.0.2"},
		"a new node gets the one at which the operator reached its host": {NodeIPChoice{Reached: "10.0.0.2",
			Reported: []string{"10.0.0.1", "10.0.0.2"}}, "10.0.0.2"},
		"behind address translation a new node gets the first": {NodeIPChoice{Reached: "203.0.113.7",
			Reported: []string{"192.168.0.7", "192.168.1.7"}}, "192.168.0.7"},
		"one of the pods' network is not chosen": {NodeIPChoice{Reached: "203.0.113.7",
			Reported: []string{"10.132.0.2", "192.168.0.7"}}, "192.168.0.7"},
		"unless there is no other one":    {NodeIPChoice{Reported: []string{"10.132.0.2"}}, "10.132.0.2"},
		"without addresses there is none": {NodeIPChoice{Known: []string{"10.0.0.1"}, Reached: "10.0.0.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ChooseNodeIP(c.choice, cluster); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}
