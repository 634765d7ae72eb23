package nodename

import (
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func TestNameClaim_DuplicateComputerNameRejected(t *testing.T) {
	named := func(name, node, computer string, age time.Duration) v1alpha1.WindowsInstance {
		instance := newClaimant(name, node, "key of "+name, age)
		instance.Status.Host.Name = computer
		return instance
	}
	withHostName := func(instance v1alpha1.WindowsInstance, hostName string) v1alpha1.WindowsInstance {
		instance.Spec.HostName = hostName
		return instance
	}
	young, old := named("young", "ip-10-0-0-5.ec2.internal", "WIN-CLONE", 0), named("old", "ip-10-0-0-4.ec2.internal", "win-clone", time.Hour)
	confirmed := old
	confirmed.Status.NodeRef = &v1alpha1.NodeReference{Name: old.Status.NodeRef.Name, Confirmed: true}
	for name, c := range map[string]struct {
		own, other v1alpha1.WindowsInstance
		reason     string
	}{
		"the younger is refused": {young, old, v1alpha1.ReasonNameConflict},
		"and so is one that comes after a node": {old, func() v1alpha1.WindowsInstance {
			c := young
			c.Status.NodeRef = &v1alpha1.NodeReference{Name: "ip-10-0-0-5.ec2.internal", Confirmed: true}
			return c
		}(), v1alpha1.ReasonNameConflict},
		"the older waits until it has withdrawn": {old, young, v1alpha1.ReasonWaiting},
		"a node keeps its name":                  {young, confirmed, v1alpha1.ReasonNameConflict},
		"other names are free":                   {young, named("old", "ip-10-0-0-4.ec2.internal", "WIN-OTHER", time.Hour), ""},
		"a host that was not asked yet":          {young, named("old", "ip-10-0-0-4.ec2.internal", "", time.Hour), ""},
		"one that is given a name of its own":    {withHostName(young, "winworker-1"), old, ""},
		"both are given the same name":           {withHostName(young, "winworker-1"), withHostName(old, "winworker-1"), v1alpha1.ReasonNameConflict},
	} {
		t.Run(name, func(t *testing.T) {
			got := Grant(Claim{Instance: c.own, NodeName: c.own.Status.NodeRef.Name, Others: []v1alpha1.WindowsInstance{c.own, c.other}})
			if got.Allowed != (c.reason == "") || got.Reason != c.reason {
				t.Fatalf("the decision is %+v", got)
			}
			if c.reason == v1alpha1.ReasonNameConflict && !strings.Contains(strings.ToLower(got.Message), computerName(&c.own)) &&
				!strings.Contains(got.Message, computerName(&c.own)) {
				t.Errorf("it says %q", got.Message)
			}
		})
	}
}
