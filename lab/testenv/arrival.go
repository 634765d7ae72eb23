package testenv

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/winhost"
)

// Arrival measures how long a new virtual machine took to become a node, from the opening of port 22 until its
// instance was Ready. With virtual time, no part of this is computation.
type Arrival struct {
	// UserData is the remaining run time of the user data until the host accepted the operator's key, and Noticed the
	// time until the operator connected.
	UserData, Noticed time.Duration
	// Windows is the time that Windows needed for features and the restart, and Returned the time until the operator
	// connected again.
	Windows, Returned time.Duration
	// Line is the transmission time of all bytes that the host received, without latency.
	Line time.Duration
	// Between is the remaining time: above all, round trips. API timestamps have a resolution of one second, so the
	// value may be up to one second too high.
	Between time.Duration
}

// Total returns the sum of all parts.
func (a Arrival) Total() time.Duration { return a.OperatorShare() + a.UserData + a.Windows + a.Line }

// OperatorShare returns the operator's share, without the time of host and line.
func (a Arrival) OperatorShare() time.Duration { return a.Noticed + a.Returned + a.Between }

// ArrivalOf measures the arrival of the virtual machine of a Machine, after exactly one restart.
func (r *Environment) ArrivalOf(ctx context.Context, machine string) (Arrival, error) {
	instance, err := r.MachineInstance(ctx, machine)
	if err != nil {
		return Arrival{}, err
	}
	if !IsReady(instance) {
		return Arrival{}, fmt.Errorf("the instance of Machine %s is not Ready", machine)
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions,
		v1alpha1.ConditionReady).LastTransitionTime.Add(time.Second)
	h := r.MachineHost(machine)
	if h == nil {
		return Arrival{}, fmt.Errorf("machine %s has no virtual machine", machine)
	}
	open, accepted := h.journalEntries(winhost.KindSSHD, "listens"), h.journalEntries(KindUserData, "has run")
	connections := h.journalEntries(fake.KindConnection, "")
	if len(open) != 2 || len(accepted) == 0 {
		return Arrival{}, fmt.Errorf("the virtual machine of %s has opened its port %d times, and run its user data %d times",
			machine, len(open), len(accepted))
	}
	until := func(start fake.Entry) time.Duration { // the first connection from then on
		for _, connection := range connections {
			if !connection.Time.Before(start.Time) {
				return connection.Time.Sub(start.Time)
			}
		}
		return 0
	}
	features := time.Duration(len(h.journalEntries(fake.KindFeature, "Enable ")))
	a := Arrival{
		UserData: accepted[0].Time.Sub(open[0].Time), Noticed: until(accepted[0]),
		Windows:  features*h.Options.FeatureDuration + h.Options.RebootDuration + h.Options.BootDelay,
		Returned: until(open[1]),
	}
	if link := cmp.Or(h.Options.Link, r.options.Link); link != nil && link.Properties().BytesPerSecond > 0 {
		bytes := h.Machine().Journal().Bytes(fake.KindReceived)
		a.Line = time.Duration(float64(bytes) / float64(link.Properties().BytesPerSecond) * float64(time.Second))
	}
	a.Between = ready.Sub(open[0].Time) - a.Total()
	return a, nil
}

// journalEntries returns the journal entries of a kind with the given prefix of the detail.
func (h *Host) journalEntries(kind fake.Kind, detail string) []fake.Entry {
	return h.Machine().Journal().Entries(func(e fake.Entry) bool {
		return e.Kind == kind && strings.HasPrefix(e.Detail, detail)
	})
}
