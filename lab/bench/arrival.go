package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/virtualtime"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// The way of a new virtual machine in a cloud: what Windows takes there, and a line of 100 Mbit/s.
const (
	arrivalPlatform = "AWS"
	arrivalSet      = "windows"
	arrivalLine     = 100e6 / 8 // bytes per second
)

var arrivalVM = rig.VMOptions{
	UserDataDelay: 2 * time.Minute, FeatureDuration: 90 * time.Second, RebootDuration: 110 * time.Second,
	SSHDelay: 10 * time.Second,
}

// arrive has a Machine become a node in virtual time: no part of it is how fast this computer is.
func (o *options) arrive(ctx context.Context, payloadDir string) (a *rig.Arrival, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	o.say("a new Machine at %s round trip, in virtual time", distant)
	clock := virtualtime.New(o.clock.Now())
	r, err := rig.New(ctx, rig.Options{
		VirtualTime: clock, VM: arrivalVM, MachineAPI: true, PayloadDir: payloadDir, Agent: o.agent,
		Link:         winhost.NewLink(clock, winhost.LinkProperties{RoundTrip: distant, BytesPerSecond: arrivalLine}),
		ControlPlane: cluster.Options{Platform: arrivalPlatform},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.InjectVM(rig.VMFault{Machine: "*", RefusesKey: time.Minute, RefusesOnceMore: true})
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		return nil, err
	}
	if err := r.CreateKey(ctx); err != nil {
		return nil, err
	}
	if _, err := r.RunOperator(func(c *operator.Config) { c.Dial = winhost.Dropping(clock, c.Dial) }); err != nil {
		return nil, err
	}
	if err := r.CreateMachineSet(ctx, arrivalSet, 1, rig.MachineSetOptions{}); err != nil {
		return nil, err
	}
	names, err := r.WaitMachinesReady(ctx, arrivalSet, 1)
	if err != nil {
		return nil, err
	}
	arrival, err := r.ArrivalOf(ctx, names[0])
	if err != nil {
		return nil, fmt.Errorf("measure the arrival of Machine %s: %w", names[0], err)
	}
	o.say("  Ready %s after port 22 was open, of which %s are the operator's", arrival.Total(), arrival.Own())
	return &arrival, nil
}
