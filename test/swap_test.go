package test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// Two hosts that are listed by their addresses get each other's, as when leases of DHCP change hands. R-077
func TestHostsThatSwapTheirAddressesAreReported(t *testing.T) {
	r := installed(t, rig.Options{Cluster: besides(t), Hosts: rig.Hosts(3)})
	hosts := []*rig.Host{r.Host("instance-1"), r.Host("instance-3")} // the other one has a name, which it is followed by
	first, second := hosts[0].Options.Address, hosts[1].Options.Address
	run(t, r)
	list(t, r, "instance-1", "instance-3")
	ready(t, r, "instance-1", "instance-3")
	uids := []string{string(node(t, r, "instance-1").UID), string(node(t, r, "instance-3").UID)}
	move := func(h *rig.Host, address string) {
		t.Helper()
		if err := r.MoveHost(t.Context(), h, address); err != nil {
			t.Fatal(err)
		}
	}
	swap := func() {
		t.Helper()
		first, second := hosts[0].Options.Address, hosts[1].Options.Address
		move(hosts[0], rig.Address(77))
		move(hosts[1], first)
		move(hosts[0], second)
	}
	swap()
	for name, addresses := range map[string][2]string{"instance-1": {first, second}, "instance-3": {second, first}} {
		t.Run(name+" says which address it has lost, and which one it has", func(t *testing.T) {
			waitForConfiguration(t, r, name, corev1.ConditionFalse, "no longer has "+addresses[0]+" but "+addresses[1])
			if !eventSeen(t, r, "HostDrifted", "no longer has "+addresses[0]) {
				t.Error("no event says so")
			}
		})
	}
	t.Run("both get well when the addresses are as they were, and stay the same nodes", func(t *testing.T) {
		swap()
		for i, name := range []string{"instance-1", "instance-3"} {
			waitForConfiguration(t, r, name, corev1.ConditionTrue, "")
			if got := string(node(t, r, name).UID); got != uids[i] {
				t.Errorf("Node %s was made anew: %s, before %s", name, got, uids[i])
			}
		}
		ready(t, r, "instance-1", "instance-3")
	})
}

// waitForConfiguration waits until the agent has written its condition with a status and a text.
func waitForConfiguration(t *testing.T, r *rig.Rig, name string, status corev1.ConditionStatus, text string) {
	t.Helper()
	var found corev1.NodeCondition
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := r.WaitFor(ctx, "Node "+name+" to have "+nodespec.ConditionConfiguration+" "+string(status), &corev1.Node{},
		func(ctx context.Context, reader reader) (bool, error) {
			n := &corev1.Node{}
			err := reader.Get(ctx, keyOf("", name), n)
			i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == nodespec.ConditionConfiguration
			})
			if err != nil || i < 0 {
				return false, err
			}
			found = n.Status.Conditions[i]
			return found.Status == status && strings.Contains(found.Message, text), nil
		})
	if err != nil {
		t.Fatalf("%v; the condition is %+v", err, found)
	}
}
