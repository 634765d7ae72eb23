package soak

import (
	"slices"
	"time"
)

// Action is an action of an administrator, the cluster or a host in the course of a month.
type Action string

// Deeds.
const (
	// ChangeSetting changes the pod limit of the workers' kubelets before the maintenance window opens.
	ChangeSetting Action = "a setting of the kubelets changes"
	// TrustAuthority replaces the authority that administrators add to the trust of the cluster.
	TrustAuthority Action = "the trusted authorities change"
	// RotateKubeletAuthority replaces one of the authorities that kubelets accept for their clients.
	RotateKubeletAuthority Action = "the authorities of the kubelets' clients rotate"
	// RotateServiceAuthority replaces the serving certificate of the exporters, as the service CA does.
	RotateServiceAuthority Action = "the exporters' certificate is replaced"
	// RotateKey replaces the operator's SSH key and keeps the previous key beside it.
	RotateKey Action = "the SSH key is replaced"
	// Upgrade replaces the operator by its next release.
	Upgrade Action = "the operator is upgraded"
	// RestartAPI restarts the control plane.
	RestartAPI Action = "the control plane restarts"
	// RelistHost unlists a host and lists it again after the host was restored.
	RelistHost Action = "a host is unlisted, and listed again"
	// Drift stops a service and deletes a file on a host; the agent repairs the drift.
	Drift Action = "a host drifts from its configuration"
	// UpdateWindows restarts a host as Windows updates do.
	UpdateWindows Action = "a host restarts by itself"
	// Reboot requests a restart of a host from the operator.
	Reboot Action = "an administrator requests a restart"
	// ReplaceMachine deletes a Machine, which its MachineSet replaces.
	ReplaceMachine Action = "a Machine is deleted, and replaced"
)

// Times of a day.
const (
	day = 24 * time.Hour
	// changesBegin is the time of the administrators' disruptive changes, and windowOpens the time at which
	// disruptions may begin.
	changesBegin, windowOpens, windowDuration = 1 * time.Hour, 2 * time.Hour, 6 * time.Hour
)

// isBeforeWindow reports whether an action is performed before the maintenance window opens.
func (d Action) isBeforeWindow() bool {
	switch d {
	case ChangeSetting, TrustAuthority, RotateKubeletAuthority, RotateServiceAuthority, RotateKey, Upgrade:
		return true
	}
	return false
}

// Cycle returns the length of a cycle in days. A run has three cycles: one for warming up, and two that are
// compared.
func Cycle(days int) int { return max(1, days/3) }

// rhythm lists the days of each action in a cycle of ten days.
var rhythm = []struct {
	action Action
	on     []int
}{
	{ChangeSetting, []int{0, 2, 4, 6, 8}},
	{TrustAuthority, []int{2}},
	{RotateKubeletAuthority, []int{5}},
	{RotateServiceAuthority, []int{7}},
	{RotateKey, []int{1, 6}},
	{RestartAPI, []int{5}},
	{RelistHost, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{Drift, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{UpdateWindows, []int{1, 4, 7}},
	{Reboot, []int{9}},
	{ReplaceMachine, []int{3, 8}},
}

// upgrades are the days of the first cycle with an upgrade of the operator. The compared cycles must run
// without upgrades, because an upgrade ends the operator and its leaks.
var upgrades = []int{3, 8}

// Plan returns the ordered actions of a day, starting from 0. All cycles have the same actions; a shorter cycle has
// the actions of ten days, closer together.
func Plan(number, days int) (actions []Action) {
	cycle := Cycle(days)
	if number < min(cycle, tenDays) && isScheduled(upgrades, number, cycle) {
		actions = append(actions, Upgrade)
	}
	for _, each := range rhythm {
		if isScheduled(each.on, number%cycle, cycle) {
			actions = append(actions, each.action)
		}
	}
	return actions
}

// tenDays is the length of the rhythm.
const tenDays = 10

// isScheduled reports whether a day of a cycle is one of the days of the rhythm. A longer cycle repeats the rhythm.
func isScheduled(on []int, number, cycle int) bool {
	return slices.ContainsFunc(on, func(each int) bool { return each%min(cycle, tenDays) == number%tenDays })
}
