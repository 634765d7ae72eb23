package machines

import (
	"context"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/testenv/e2e"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// typicalCloud has typical times of a new virtual machine with Windows Server in a distant cloud. Port 22 is open for
// the last of three minutes of user data. The SSH server takes ten seconds of two minutes of restart.
var typicalCloud = testenv.VMOptions{
	UserDataDelay: 2 * time.Minute, FeatureDuration: 90 * time.Second, RebootDuration: 110 * time.Second,
	SSHDelay: 10 * time.Second,
}

const (
	keyRefusalDuration = time.Minute
	roundTrip          = 50 * time.Millisecond
	bytesPerSecond     = 100e6 / 8
)

// Time limits that a user may expect, and limits for the operator's share beyond the time of Windows and the
// network.
const (
	maxJoinDuration = 10 * time.Minute
	// maxOperatorDuration is the maximum for the operator's complete share.
	maxOperatorDuration = 28 * time.Second
	// While user data runs, the operator checks every 15 s, as reported in the status. A check takes a second.
	maxNoticeDelay = 16 * time.Second
	// While a host restarts, TCP retries after at most 4 s, and the operator retries 2 s after a timeout.
	maxReturnDelay = 6 * time.Second
	// The sum of 60 round trips, 0.5 s until the kubelet checks for its network, 2 s until the operator checks the
	// kubelet's report, and 1 s for the rounding in the API.
	maxBetweenDuration = 60*roundTrip + 3500*time.Millisecond
)

// Time is virtual: it passes for host, network and operator, independent of the speed of this machine. R-038
func TestANewVirtualMachineIsANodeWithinTenMinutesAndLittleOfThemIsTheOperators(t *testing.T) {
	clock := virtualtime.New(time.Now())
	l := start(t, "AWS", testenv.Options{
		Cluster: exclusiveCluster(t, "AWS"), VirtualTime: clock, VM: typicalCloud, PayloadDir: allFiles.Directory(t),
		Link: winhost.NewLink(clock, winhost.LinkProperties{RoundTrip: roundTrip, BytesPerSecond: bytesPerSecond}),
	})
	l.InjectVM(testenv.VMFault{Machine: "*", KeyRefusalDuration: keyRefusalDuration, RefusesOnceMore: true})
	_, err := l.RunOperator(func(c *operator.Config) { c.Dial = winhost.Dropping(clock, c.Dial) })
	l.requireNoError(err)
	l.createMachineSet("windows", 1, testenv.MachineSetOptions{})
	// On a busy machine, virtual time passes slowly.
	ctx, cancel := context.WithTimeout(t.Context(), 3*e2e.WaitTimeout)
	defer cancel()
	names, err := l.WaitMachinesReady(ctx, "windows", 1)
	l.requireNoError(err)
	arrival, err := l.ArrivalOf(ctx, names[0])
	l.requireNoError(err)
	t.Logf("after %s: %+v", arrival.Total(), arrival)
	if total := arrival.Total(); total > maxJoinDuration || total < typicalCloud.FeatureDuration+typicalCloud.RebootDuration {
		t.Errorf("it was a node after %s", total)
	}
	for what, c := range map[string]struct{ elapsed, limit time.Duration }{
		"of the operator's own":                                  {arrival.OperatorShare(), maxOperatorDuration},
		"until the operator noticed that the key is accepted":    {arrival.Noticed, maxNoticeDelay},
		"until the operator noticed that the host has restarted": {arrival.Returned, maxReturnDelay},
		"between the operator's steps":                           {arrival.Between, maxBetweenDuration},
	} {
		if c.elapsed > c.limit || c.elapsed <= 0 {
			t.Errorf("%s passed %s, and %s may", c.elapsed, what, c.limit)
		}
	}
}
