package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// runAction performs an action.
func (l *lab) runAction(ctx context.Context, action Action) error {
	run := l.runsByAction[action]
	l.runsByAction[action]++
	act, known := map[Action]func(*lab, context.Context, int) error{
		ChangeSetting: (*lab).changeSetting, TrustAuthority: (*lab).trustAuthority,
		RotateKubeletAuthority: (*lab).rotateKubeletAuthority, RotateServiceAuthority: (*lab).rotateServiceAuthority,
		RotateKey: (*lab).rotateKey, Upgrade: (*lab).upgradeOperator, RestartAPI: (*lab).restartAPI, RelistHost: (*lab).relistHost,
		Drift: (*lab).causeDrift, UpdateWindows: (*lab).updateWindows, Reboot: (*lab).requestReboot, ReplaceMachine: (*lab).replaceMachine,
	}[action]
	if !known {
		return fmt.Errorf("nobody knows how it is done that %s", action)
	}
	if err := act(l, ctx, run); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}

// maxPods is the kubelets' pod limit; every second change adds one.
const maxPods = 100

func (l *lab) changeSetting(ctx context.Context, run int) error {
	return l.SetKubeletSettings(ctx, map[string]any{"maxPods": maxPods + run%2})
}

func (l *lab) trustAuthority(ctx context.Context, run int) error {
	certificate, _, err := l.newAuthority(fmt.Sprintf("administrators-%03d", run))
	if err != nil {
		return err
	}
	return l.SetTrustedCAs(ctx, certificate)
}

// rotateKubeletAuthority keeps the authority of the control plane's own clients and replaces the additional
// authority.
func (l *lab) rotateKubeletAuthority(ctx context.Context, run int) error {
	certificate, _, err := l.newAuthority(fmt.Sprintf("clients-%03d", run))
	if err != nil {
		return err
	}
	if l.clientAuthorities == "" {
		if l.clientAuthorities, err = l.SetKubeletClientCAs(ctx, certificate); err != nil {
			return err
		}
	}
	_, err = l.SetKubeletClientCAs(ctx, l.clientAuthorities+certificate)
	return err
}

func (l *lab) rotateServiceAuthority(ctx context.Context, run int) error {
	certificate, key, err := l.newAuthority(fmt.Sprintf("exporters-%03d", run))
	if err != nil {
		return err
	}
	return l.SetExporterTLS(ctx, []byte(certificate), []byte(key))
}

func (l *lab) rotateKey(ctx context.Context, _ int) error { return l.RotateKey(ctx, true) }

// upgradeOperator stops the operator and starts the next release, as a Deployment with the strategy Recreate does.
func (l *lab) upgradeOperator(_ context.Context, _ int) error {
	if err := l.operator.Stop(); err != nil {
		return err
	}
	l.release++
	return l.startOperator()
}

func (l *lab) restartAPI(ctx context.Context, _ int) error { return l.Cluster().Restart(ctx) }

// relistHost always unlists the same host: growth is visible on the other hosts, which stay nodes.
func (l *lab) relistHost(ctx context.Context, _ int) error {
	all := l.listed
	last := len(all) - 1
	name := all[last]
	l.listed = slices.Clone(all[:last])
	if err := l.ListHosts(ctx, l.listed...); err != nil {
		return err
	}
	if err := l.awaitConvergence(ctx, name+" is not listed any more"); err != nil {
		return err
	}
	l.listed = all
	return l.ListHosts(ctx, l.listed...)
}

// The drift: a file and a service that exist on each node.
const (
	driftingFile    = `C:\k\kubelet.conf`
	driftingService = "windows_exporter"
)

func (l *lab) causeDrift(ctx context.Context, run int) error {
	h := l.Host(l.listed[run%len(l.listed)])
	before, err := h.Machine().Drive().ReadFile(driftingFile)
	if err != nil {
		return err
	}
	if err := errors.Join(h.Machine().Drive().Remove(driftingFile), h.Machine().CrashService(driftingService, 1)); err != nil {
		return err
	}
	for start := time.Now(); ; {
		if err := l.sleepVirtual(ctx, checkInterval); err != nil {
			return err
		}
		now, err := h.Machine().Drive().ReadFile(driftingFile)
		if err == nil && string(now) == string(before) {
			return nil
		}
		if time.Since(start) > l.options.Timeout {
			return fmt.Errorf("%s of %s was not put back: %w", driftingFile, h.Options.Name, err)
		}
	}
}

// shutdownDuration is the time that a host with Windows updates is off.
const shutdownDuration = 3 * time.Minute

func (l *lab) updateWindows(ctx context.Context, run int) error {
	h := l.Host(l.listed[run%len(l.listed)])
	h.Machine().PowerOff()
	return errors.Join(l.sleepVirtual(ctx, shutdownDuration), h.Machine().Boot(ctx))
}

func (l *lab) requestReboot(ctx context.Context, run int) error {
	node := &corev1.Node{}
	node.Name = l.Host(l.listed[run%len(l.listed)]).NodeName()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, v1alpha1.AnnotationRebootRequired)
	return l.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (l *lab) replaceMachine(ctx context.Context, _ int) error {
	owned, err := l.Machines(ctx, machineSet)
	if err != nil {
		return err
	}
	if len(owned) == 0 {
		return fmt.Errorf("MachineSet %s has no Machines", machineSet)
	}
	return l.DeleteMachine(ctx, owned[0].Name)
}
