package soak

import (
	"slices"
	"time"
)

// Deed is something that an administrator, the cluster or a host does in the course of a month.
type Deed string

// Deeds.
const (
	// ChangeSetting gives the workers' kubelets another limit of pods, before the maintenance window opens.
	ChangeSetting Deed = "a setting of the kubelets changes"
	// TrustAuthority replaces the authority that administrators have the whole cluster trust.
	TrustAuthority Deed = "the trusted authorities change"
	// RotateKubeletAuthority replaces one of the authorities that kubelets know their clients by.
	RotateKubeletAuthority Deed = "the authorities of the kubelets' clients rotate"
	// RotateServiceAuthority gives the exporters another serving certificate, as the service CA does.
	RotateServiceAuthority Deed = "the exporters' certificate is replaced"
	// RotateKey gives the operator another SSH key, beside the former one.
	RotateKey Deed = "the SSH key is replaced"
	// Upgrade starts the operator's next release in place of the former one.
	Upgrade Deed = "the operator is upgraded"
	// RestartAPI restarts the control plane.
	RestartAPI Deed = "the control plane restarts"
	// RelistHost takes a host out of the list, and enters it again when its host was given back.
	RelistHost Deed = "a host is unlisted, and listed again"
	// Drift stops a service and deletes a file on a host, which its agent puts back.
	Drift Deed = "a host drifts from its configuration"
	// UpdateWindows restarts a host as Windows updates do.
	UpdateWindows Deed = "a host restarts by itself"
	// Reboot asks the operator for a restart of a host.
	Reboot Deed = "an administrator asks for a restart"
	// ReplaceMachine deletes a Machine, for which its MachineSet makes another one.
	ReplaceMachine Deed = "a Machine is deleted, and replaced"
)

// Times of a day.
const (
	day = 24 * time.Hour
	// changesBegin is when administrators change what leads to disruptions, and windowOpens when these may begin.
	changesBegin, windowOpens, windowDuration = 1 * time.Hour, 2 * time.Hour, 6 * time.Hour
)

// beforeWindow reports whether a deed is done before the maintenance window opens.
func (d Deed) beforeWindow() bool {
	switch d {
	case ChangeSetting, TrustAuthority, RotateKubeletAuthority, RotateServiceAuthority, RotateKey, Upgrade:
		return true
	}
	return false
}

// Cycle returns how many days are a cycle: three make the whole time, so that one is for warming up, and two are
// compared.
func Cycle(days int) int { return max(1, days/3) }

// rhythm says on which days of a cycle of ten something is done.
var rhythm = []struct {
	deed Deed
	on   []int
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

// upgrades are the days of the first cycle on which the operator is upgraded. One process works through the cycles that
// are compared: what it keeps would be gone with it.
var upgrades = []int{3, 8}

// Plan returns the deeds of a day, from 0, in their order. Each cycle has the same; a shorter one has all that is done
// in one of ten days, closer together.
func Plan(number, days int) (deeds []Deed) {
	cycle := Cycle(days)
	if number < min(cycle, tenDays) && falls(upgrades, number, cycle) {
		deeds = append(deeds, Upgrade)
	}
	for _, each := range rhythm {
		if falls(each.on, number%cycle, cycle) {
			deeds = append(deeds, each.deed)
		}
	}
	return deeds
}

// tenDays are as long as the rhythm.
const tenDays = 10

// falls reports whether one of the days of the rhythm is this day of a cycle. A longer cycle has the rhythm again.
func falls(on []int, number, cycle int) bool {
	return slices.ContainsFunc(on, func(each int) bool { return each%min(cycle, tenDays) == number%tenDays })
}
