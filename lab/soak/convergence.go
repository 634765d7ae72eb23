package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/robustness"
)

// workStride is the stride while the fleet works and no measurement needs a finer resolution.
const workStride = 2 * time.Second

// checkInterval is the interval between checks of the fleet, in virtual time.
const checkInterval = 10 * time.Second

// awaitConvergence waits until the fleet has the desired state twice in a row. The limit is in real time.
func (l *lab) awaitConvergence(ctx context.Context, after string) error {
	start, virtualStart := time.Now(), l.clock.Now()
	for quiet := 0; quiet < 2; {
		if err := l.sleepVirtual(ctx, checkInterval); err != nil {
			return err
		}
		missing, err := l.findMissing(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("look after the fleet: %w", err)
		case len(missing) == 0:
			quiet++
		case time.Since(start) > l.options.Timeout:
			return fmt.Errorf("after %q the fleet was not as it was asked for within %s, which were %s of virtual time:\n%s", after,
				l.options.Timeout, l.clock.Since(virtualStart), strings.Join(missing, "\n"))
		default:
			quiet = 0
		}
	}
	return nil
}

// sleepVirtual waits for a duration of virtual time. It returns an error if a component has ended meanwhile.
func (l *lab) sleepVirtual(ctx context.Context, d time.Duration) error {
	timer := l.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-l.operator.Done():
		return fmt.Errorf("the operator has ended by itself: %w", l.operator.Stop())
	case <-l.Cluster().Done():
		return fmt.Errorf("the control plane has ended by itself")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// strideUntil lets virtual time pass in strides until a time of day.
func (l *lab) strideUntil(ctx context.Context, at time.Time) error {
	l.clock.Stride(l.options.Stride)
	defer l.clock.Stride(workStride)
	for left := at.Sub(l.clock.Now()); left > 0; left = at.Sub(l.clock.Now()) {
		if err := l.sleepVirtual(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// findMissing returns the differences from the desired state.
func (l *lab) findMissing(ctx context.Context) ([]string, error) {
	var current robustness.CurrentState
	var nodes corev1.NodeList
	var instances v1alpha1.WindowsInstanceList
	var requests certificatesv1.CertificateSigningRequestList
	if err := l.Client.List(ctx, &nodes); err != nil {
		return nil, err
	}
	if err := l.Client.List(ctx, &instances, client.InNamespace(l.Namespace())); err != nil {
		return nil, err
	}
	if err := l.Client.List(ctx, &requests); err != nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: l.Namespace(), Name: v1alpha1.DisruptionPolicyName}
	if err := l.Client.Get(ctx, key, &current.Policy); err != nil {
		return nil, err
	}
	owned, err := l.Machines(ctx, machineSet)
	if err != nil {
		return nil, err
	}
	current.Nodes, current.Instances, current.Requests, current.Machines = nodes.Items, instances.Items, requests.Items, owned
	return robustness.Missing(l.desiredState(), current), nil
}

func (l *lab) desiredState() robustness.DesiredState {
	w := robustness.DesiredState{Machines: machines, Version: l.options.Releases[l.release].Version, KeyHash: l.KeyHash()}
	for _, h := range l.Hosts() {
		address, _ := h.Entry()
		host := robustness.DesiredHost{Node: h.NodeName(), Address: address}
		if slices.Contains(l.listed, h.Options.Name) {
			w.Listed = append(w.Listed, host)
		} else {
			w.Unlisted = append(w.Unlisted, host)
		}
	}
	return w
}
