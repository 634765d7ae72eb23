package disruption

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

func newTextValue(s string) *intstr.IntOrString {
	v := intstr.FromString(s)
	return &v
}

func TestParseDisruptionPolicy(t *testing.T) {
	t.Run("an empty policy disturbs one node at a time, at any time", func(t *testing.T) {
		got, err := Parse(v1alpha1.WindowsDisruptionPolicySpec{})
		if err != nil || got.MaxUnavailable != (Limit{Number: 1}) || got.FailureDeadline != 30*time.Minute || got.DrainTimeout != 15*time.Minute ||
			got.CanarySoak != 0 || got.UpgradeStrategy != v1alpha1.UpgradeReplace || got.Invalid != "" {
			t.Errorf("got %+v, %v", got, err)
		}
		if open, _, _ := got.NextWindow(noon); !open {
			t.Error("it is closed")
		}
	})
	t.Run("a policy with everything is followed", func(t *testing.T) {
		got, err := Parse(v1alpha1.WindowsDisruptionPolicySpec{
			Paused: true, MaxUnavailable: newTextValue("25%"), HostPoolLabel: "topology.kubernetes.io/zone", CanarySoak: newDuration(time.Hour), StopOnFailure: true,
			FailureDeadline: newDuration(time.Hour), DrainTimeout: newDuration(time.Minute), UpgradeStrategy: v1alpha1.UpgradeInPlace,
			Pools: []v1alpha1.DisruptionPool{{Name: "MachineSet/a", MaxUnavailable: newNumberValue(2)}, {Name: "Hosts"}, {Name: "Hosts/east", MaxUnavailable: newTextValue("3"), Paused: true}},
			MaintenanceWindows: []v1alpha1.MaintenanceWindow{
				{Schedule: "0 2 * * SAT", Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "Europe/Paris"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if *got.Pools["MachineSet/a"].MaxUnavailable != (Limit{Number: 2}) || got.Pools["Hosts"].MaxUnavailable != nil ||
			*got.Pools["Hosts/east"].MaxUnavailable != (Limit{Number: 3}) || !got.Pools["Hosts/east"].Paused || got.MaxUnavailable != (Limit{Percent: 25}) {
			t.Errorf("pools are %+v, %+v", got.Pools, got.MaxUnavailable)
		}
		if want := `"0 2 * * SAT" for 4h, Europe/Paris`; got.Windows[0].Text != want {
			t.Errorf("the window is %s", got.Windows[0].Text)
		}
	})
	t.Run("Machines of no MachineSet are a pool that can be paused", func(t *testing.T) {
		got, err := Parse(v1alpha1.WindowsDisruptionPolicySpec{Pools: []v1alpha1.DisruptionPool{{Name: MachinesPool, Paused: true}}})
		if err != nil || !got.Pools[MachinesPool].Paused {
			t.Errorf("got %+v, %v", got.Pools, err)
		}
	})
	t.Run("a drain does not take all the time that a change has", func(t *testing.T) {
		for drain, want := range map[time.Duration]time.Duration{9 * time.Minute: 9 * time.Minute, 10 * time.Minute: 5 * time.Minute, 99999 * time.Hour: 5 * time.Minute} {
			got, err := Parse(v1alpha1.WindowsDisruptionPolicySpec{FailureDeadline: newDuration(10 * time.Minute), DrainTimeout: newDuration(drain)})
			if err != nil || got.DrainTimeout != want {
				t.Errorf("of %s it has %s, %v", drain, got.DrainTimeout, err)
			}
		}
		got, _ := Parse(v1alpha1.WindowsDisruptionPolicySpec{FailureDeadline: newDuration(10 * time.Minute)})
		if got.DrainTimeout != 5*time.Minute {
			t.Errorf("by default it has %s", got.DrainTimeout)
		}
	})
	for name, test := range map[string]struct {
		spec v1alpha1.WindowsDisruptionPolicySpec
		// want is the start of the error, before the remedy.
		want string
	}{
		"no node at all":             {v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newNumberValue(0)}, `spec.maxUnavailable: "0" is not a number of nodes: use `},
		"fewer than none":            {v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newNumberValue(-1)}, `spec.maxUnavailable: "-1" is no`},
		"more than all":              {v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newTextValue("101%")}, `spec.maxUnavailable: "101%" is no`},
		"nothing of all":             {v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newTextValue("0%")}, `spec.maxUnavailable: "0%" is no`},
		"words":                      {v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newTextValue("all")}, `spec.maxUnavailable: "all" is no`},
		"a pool of no kind":          {v1alpha1.WindowsDisruptionPolicySpec{Pools: []v1alpha1.DisruptionPool{{Name: "workers"}}}, `spec.pools[0].name: "workers" is not a pool name: use MachineSet/`},
		"a MachineSet without name":  {v1alpha1.WindowsDisruptionPolicySpec{Pools: []v1alpha1.DisruptionPool{{Name: "MachineSet/"}}}, `spec.pools[0].name: "MachineSet/" is`},
		"a pool twice":               {v1alpha1.WindowsDisruptionPolicySpec{Pools: []v1alpha1.DisruptionPool{{Name: "Hosts"}, {Name: "Hosts"}}}, `spec.pools[1].name: "Hosts" is a duplicate: `},
		"a pool with a wrong limit":  {v1alpha1.WindowsDisruptionPolicySpec{Pools: []v1alpha1.DisruptionPool{{Name: "Hosts", MaxUnavailable: newTextValue("x")}}}, `spec.pools[0].maxUnavailable: "x" is no`},
		"an invalid label":           {v1alpha1.WindowsDisruptionPolicySpec{HostPoolLabel: "a b"}, `spec.hostPoolLabel: "a b" is not a label key: use`},
		"no time for a change":       {v1alpha1.WindowsDisruptionPolicySpec{FailureDeadline: newDuration(0)}, `spec.failureDeadline: 0s is too short: use 1m0s or more`},
		"no time for pods":           {v1alpha1.WindowsDisruptionPolicySpec{DrainTimeout: newDuration(-1)}, `spec.drainTimeout: -1ns is too short`},
		"less than no soak":          {v1alpha1.WindowsDisruptionPolicySpec{CanarySoak: newDuration(-time.Second)}, `spec.canarySoak: -1s is too short`},
		"an invalid strategy":        {v1alpha1.WindowsDisruptionPolicySpec{UpgradeStrategy: "Recreate"}, `spec.upgradeStrategy: "Recreate" is not a strategy: use Replace or InPlace`},
		"a window of four fields":    {openAt("0 2 * *", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "0 2 * *" is not a cron schedule with five fields (`},
		"a window of six fields":     {openAt("0 0 2 * * *", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "0 0 2 * * *" is not`},
		"a window by a word":         {openAt("@daily", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "@daily" is not`},
		"a window on day 7":          {openAt("0 2 * * 7", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "0 2 * * 7" is not`},
		"a window on a missing day":  {openAt("0 2 30 2 *", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "0 2 30 2 *" contains a date that does not exist`},
		"a time zone in a schedule":  {openAt("TZ=UTC 0 2 * * *", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "TZ=UTC 0 2 * * *" contains a time zone`},
		"nothing but a time zone":    {openAt("TZ=UTC", time.Hour, ""), `spec.maintenanceWindows[0].schedule: "TZ=UTC" contains a time zone`},
		"an invalid time zone":       {openAt("0 2 * * *", time.Hour, "Paris"), `spec.maintenanceWindows[0].timeZone: "Paris" is not a known time zone: use`},
		"the operator's own zone":    {openAt("0 2 * * *", time.Hour, "Local"), `spec.maintenanceWindows[0].timeZone: "Local" is no`},
		"a file as a time zone":      {openAt("0 2 * * *", time.Hour, "../../etc/passwd"), `spec.maintenanceWindows[0].timeZone: `},
		"a window that never opens":  {openAt("0 2 * * *", 0, ""), `spec.maintenanceWindows[0].duration: 0s is shorter than a minute: use`},
		"a window that closes early": {openAt("0 2 * * *", -time.Hour, ""), `spec.maintenanceWindows[0].duration: -1h0m0s is shorter`},
	} {
		t.Run("a policy with "+name+" is refused, and the limit stays one", func(t *testing.T) {
			got, err := Parse(test.spec)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || got.Invalid != err.Error() {
				t.Errorf("got %v, invalid is %q", err, got.Invalid)
			}
			if got.MaxUnavailable.Of(100) != 1 || got.FailureDeadline != DefaultFailureDeadline || got.DrainTimeout != DefaultDrainTimeout || got.UpgradeStrategy != v1alpha1.UpgradeReplace {
				t.Errorf("settings are %+v", got)
			}
		})
	}
	t.Run("all faults are reported at once, in one line", func(t *testing.T) {
		_, err := Parse(v1alpha1.WindowsDisruptionPolicySpec{MaxUnavailable: newNumberValue(0), HostPoolLabel: "!"})
		if err == nil || !strings.Contains(err.Error(), "; spec.maxUnavailable") || strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
	})
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		limit       Limit
		nodes, want int
	}{
		{Limit{Number: 3}, 0, 3}, {Limit{Percent: 10}, 0, 1}, {Limit{Percent: 10}, 19, 1}, {Limit{Percent: 10}, 20, 2},
		{Limit{Percent: 33}, 9, 2},
		{Limit{Percent: 100}, 7, 7}, {Limit{}, 7, 1},
	} {
		if got := test.limit.Of(test.nodes); got != test.want {
			t.Errorf("%+v of %d nodes is %d, want %d", test.limit, test.nodes, got, test.want)
		}
	}
}

func TestHostPool_FollowsPoolLabel(t *testing.T) {
	label := Settings{HostPoolLabel: "zone"}
	for _, test := range []struct {
		settings Settings
		labels   map[string]string
		want     string
	}{
		{Settings{}, map[string]string{"zone": "east"}, "Hosts"}, {label, map[string]string{"zone": "east"}, "Hosts/east"},
		{label, nil, "Hosts"}, {label, map[string]string{"zone": ""}, "Hosts"},
		{Settings{}, map[string]string{"": "x"}, "Hosts"},
	} {
		if got := test.settings.HostPool(test.labels); got != test.want {
			t.Errorf("%+v is in %s, want %s", test, got, test.want)
		}
	}
}

// For any input of an administrator, the parser neither panics nor hangs, and the returned settings are usable.
func FuzzParseDisruptionPolicy(f *testing.F) {
	f.Add("0 2 * * SAT", "Europe/Paris", "25%", "Hosts", int64(time.Hour))
	f.Add("TZ=UTC", "../x", "0", "MachineSet/", int64(-1))
	f.Add("*/5 22-4 1,15 JAN-MAR ?", "America/Sao_Paulo", "101%", "Hosts/east", int64(1)<<62)
	f.Add("0 0 29 2 *", "", "%", "", int64(0))
	f.Add("CRON_TZ= 0", "Local", "-0%", "Hosts/", int64(time.Minute))
	f.Fuzz(func(t *testing.T, schedule, zone, limit, pool string, duration int64) {
		if len(schedule) > 100 || len(zone) > 64 {
			return // the API server rejects longer values
		}
		spec := openAt(schedule, time.Duration(duration), zone)
		spec.MaxUnavailable = newTextValue(limit)
		spec.Pools = []v1alpha1.DisruptionPool{{Name: pool, MaxUnavailable: newTextValue(limit)}}
		got, err := Parse(spec)
		if (err == nil) != (got.Invalid == "") {
			t.Fatalf("%v, %q", err, got.Invalid)
		}
		if n := got.MaxUnavailable.Of(10); n < 1 {
			t.Fatalf("the limit is %d", n)
		}
		open, next, _ := got.NextWindow(noon)
		if err == nil && !open && !next.IsZero() && !next.After(noon) {
			t.Fatalf("the next window opens at %s", next)
		}
	})
}
