package soak

import (
	"slices"
	"testing"
)

func TestPlan_EachCycleHasSameActions(t *testing.T) {
	for _, days := range []int{3, 6, 10, 30, 60} {
		cycle := Cycle(days)
		upgraded := 0
		for number := range days {
			actions := Plan(number, days)
			if slices.Contains(actions, Upgrade) {
				if upgraded++; number >= cycle {
					t.Errorf("of %d days, day %d has an upgrade: the operator must not be another in the days that are compared", days, number)
				}
			}
			if number < cycle {
				continue
			}
			before := slices.DeleteFunc(Plan(number-cycle, days), func(d Action) bool { return d == Upgrade })
			if !slices.Equal(actions, before) {
				t.Errorf("of %d days, day %d has %q, and a cycle before %q", days, number, actions, before)
			}
		}
		if upgraded == 0 || upgraded >= Releases {
			t.Errorf("%d days have %d upgrades", days, upgraded)
		}
	}
}

func TestPlan_EachCycleHasAllActions(t *testing.T) {
	for _, days := range []int{3, 6, 30} {
		done := map[Action]bool{Upgrade: true}
		for number := range Cycle(days) {
			for _, action := range Plan(number, days) {
				done[action] = true
			}
		}
		for _, each := range rhythm {
			if !done[each.action] {
				t.Errorf("in %d days it is never done that %s", days, each.action)
			}
		}
	}
}

// Changes that lead to disruptions wait for the maintenance window; all other actions are performed in the window.
func TestPlan_ActionsWaitingForWindowComeFirst(t *testing.T) {
	for number := range 30 {
		actions := Plan(number, 30)
		if !slices.IsSortedFunc(actions, func(a, b Action) int {
			switch {
			case a.isBeforeWindow() == b.isBeforeWindow():
				return 0
			case a.isBeforeWindow():
				return -1
			}
			return 1
		}) {
			t.Errorf("day %d: %q", number, actions)
		}
	}
}

func TestPlan_ActionsPerMonth(t *testing.T) {
	counts := map[Action]int{}
	for number := range 30 {
		for _, action := range Plan(number, 30) {
			counts[action]++
		}
	}
	for action, want := range map[Action]int{Upgrade: 2, RotateKey: 6, RelistHost: 30, Drift: 30, UpdateWindows: 9, ReplaceMachine: 6,
		RestartAPI: 3, ChangeSetting: 15} {
		if counts[action] != want {
			t.Errorf("in a month %d times: %s; want %d", counts[action], action, want)
		}
	}
}
