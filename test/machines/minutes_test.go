package machines

import (
	"context"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/rig/rigtest"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// A new virtual machine with Windows Server takes about as long as this in a cloud, and it is far away. Of three
// minutes of user data, port 22 is open for the last one; of two minutes of restart, the SSH server takes ten seconds.
var aCloud = rig.VMOptions{
	UserDataDelay: 2 * time.Minute, FeatureDuration: 90 * time.Second, RebootDuration: 110 * time.Second,
	SSHDelay: 10 * time.Second,
}

const (
	opensEarly     = time.Minute
	roundTrip      = 50 * time.Millisecond
	bytesPerSecond = 100e6 / 8
)

// What a user may expect, and what the operator may add to the time that Windows and the line take.
const (
	joinLimit = 10 * time.Minute
	// ownLimit is for all that is the operator's.
	ownLimit = 28 * time.Second
	// While user data is at work the operator looks every 15 s, as the status says. A look takes a second.
	noticedLimit = 16 * time.Second
	// While a host restarts, TCP asks again after at most 4 s, and the operator looks 2 s after it has given up.
	returnedLimit = 6 * time.Second
	// 60 round trips, 0.5 s until the kubelet looks whether its network is there, 2 s until the operator looks whether it
	// has said so, and the second that the API rounds by.
	betweenLimit = 60*roundTrip + 3500*time.Millisecond
)

// Time is virtual: it is waited for host, line and operator, but not for this machine. R-038
func TestANewVirtualMachineIsANodeWithinTenMinutesAndLittleOfThemIsTheOperators(t *testing.T) {
	clock := virtualtime.New(time.Now())
	l := start(t, "AWS", rig.Options{
		Cluster: alone(t, "AWS"), VirtualTime: clock, VM: aCloud, PayloadDir: allFiles.Directory(t),
		Link: winhost.NewLink(clock, winhost.LinkProperties{RoundTrip: roundTrip, BytesPerSecond: bytesPerSecond}),
	})
	l.InjectVM(rig.VMFault{Machine: "*", RefusesKey: opensEarly, RefusesOnceMore: true})
	_, err := l.RunOperator(func(c *operator.Config) { c.Dial = winhost.Dropping(clock, c.Dial) })
	l.must(err)
	l.machineSet("windows", 1, rig.MachineSetOptions{})
	// On a busy machine virtual time passes slowly.
	ctx, cancel := context.WithTimeout(t.Context(), 3*rigtest.Patience)
	defer cancel()
	names, err := l.WaitMachinesReady(ctx, "windows", 1)
	l.must(err)
	arrival, err := l.ArrivalOf(ctx, names[0])
	l.must(err)
	t.Logf("after %s: %+v", arrival.Total(), arrival)
	if total := arrival.Total(); total > joinLimit || total < aCloud.FeatureDuration+aCloud.RebootDuration {
		t.Errorf("it was a node after %s", total)
	}
	for what, c := range map[string]struct{ took, limit time.Duration }{
		"of the operator's own":                                  {arrival.Own(), ownLimit},
		"until the operator noticed that the key is accepted":    {arrival.Noticed, noticedLimit},
		"until the operator noticed that the host has restarted": {arrival.Returned, returnedLimit},
		"between the operator's steps":                           {arrival.Between, betweenLimit},
	} {
		if c.took > c.limit || c.took <= 0 {
			t.Errorf("%s passed %s, and %s may", c.took, what, c.limit)
		}
	}
}
