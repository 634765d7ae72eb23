package prometheus

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// scraped contains a running operator and a running exporter.
const scraped = `
  up{job="windows-machine-config-operator"} 1x150
  up{job="windows-exporter",instance="win-a"} 1x150`

// alertCase is a sequence of samples. Each series has a value per minute.
type alertCase struct {
	alert string
	// series are the scraped series.
	series string
	// silent and firing are minutes; in the last minute of silent, the problem is over.
	silent, firing []int
	// about are labels of the only alert that fires.
	about map[string]string
}

var alertCases = map[string]alertCase{
	"an instance that is not Ready for more than an hour": {"WindowsInstanceNotReady", scraped + `
  wmco_instance_not_ready_since_timestamp_seconds{name="a",reason="StepFailed"} 0x80
  wmco_instance_not_ready_since_timestamp_seconds{name="p",reason="Paused"} 0x140`,
		[]int{0, 60, 64, 90}, []int{66, 80}, map[string]string{"name": "a", "reason": "StepFailed"}},
	"an instance that is not Ready with one reason after another": {"WindowsInstanceNotReady", scraped + `
  wmco_instance_not_ready_since_timestamp_seconds{name="a",reason="StepFailed"} 0x40
  wmco_instance_not_ready_since_timestamp_seconds{name="a",reason="Unreachable"} _x41 0x40`,
		[]int{40, 60, 90}, []int{67, 80}, map[string]string{"name": "a", "reason": "Unreachable"}},
	"an upgrade that is stopped": {"WindowsUpgradeStopped", scraped + `
  wmco_disruptions_stopped{reason="StoppedOnFailure"} 0x9 1x15 0x100`,
		[]int{0, 12, 27}, []int{16, 24}, map[string]string{"reason": "StoppedOnFailure"}},
	"a first node that has failed": {"WindowsCanaryFailed", scraped + `
  wmco_disruptions_stopped{reason="CanaryFailed"} 0x9 1x15 0x100`,
		[]int{0, 12, 27}, []int{16, 24}, map[string]string{"reason": "CanaryFailed"}},
	"a certificate that the operator has not renewed": {"WindowsServiceCertificateExpiring", scraped + `
  wmco_certificate_renewal_timestamp_seconds{name="a",certificate="cloud-node-manager"} 600x45 6000x60
  wmco_certificate_expiry_timestamp_seconds{name="a",certificate="cloud-node-manager"} 1800x45 18000x60`,
		[]int{0, 15, 30, 47}, []int{37, 45}, map[string]string{"name": "a", "certificate": "cloud-node-manager"}},
	"a kubelet that has not renewed its certificate": {"WindowsKubeletCertificateExpiring", scraped + `
  wmco_instance_info{name="a",node="win-a"} 1x100
  kubelet_certificate_manager_client_ttl_seconds{node="win-a"} 9000x5 7000x25 80000x60
  kubelet_certificate_manager_client_ttl_seconds{node="linux"} 100x90`,
		[]int{0, 10, 20, 33}, []int{22, 30}, map[string]string{"node": "win-a"}},
	"a host that is repaired again and again": {"WindowsHostDriftsRepeatedly", scraped + `
  wmco_agent_repairs_total{node="win-a"} 0x10 1+1x9 10x100
  wmco_agent_repairs_total{node="win-b"} 0x10 1x110`,
		[]int{0, 12, 100}, []int{20, 60}, map[string]string{"node": "win-a"}},
	"an agent that stays silent": {"WindowsAgentSilent", scraped + `
  wmco_nodes_configuration{status="True"} 2x10 1x40 2x60
  wmco_nodes_configuration{status="Unknown"} 0x10 1x40 0x60`,
		[]int{0, 20, 38, 55}, []int{43, 50}, map[string]string{"status": "Unknown"}},
	"an exporter that is down": {"WindowsExporterDown", `
  up{job="windows-machine-config-operator"} 1x150
  up{job="windows-exporter",instance="win-a"} 1x4 0x30 1x100
  up{job="windows-exporter",instance="win-b"} 1x140`,
		[]int{0, 15, 37}, []int{21, 34}, map[string]string{"instance": "win-a"}},
	"a host that restarts": {"", `
  up{job="windows-machine-config-operator"} 1x150
  up{job="windows-exporter",instance="win-a"} 1x4 0x10 1x100`,
		[]int{0, 10, 14, 20}, nil, nil},
	"a host that shows another key, and a node that works": {"WindowsHostKeyChanged", scraped + `
  wmco_instance_status{name="a",reason="Ready"} 1x4 _x16 1x100
  wmco_instance_status{name="a",reason="HostKeyChanged"} _x5 1x10`,
		[]int{0, 4, 22}, []int{6, 14}, map[string]string{"name": "a"}},
	"an operator that is down": {"WindowsMachineConfigOperatorDown", `
  up{job="windows-machine-config-operator"} 1x4 0x30 1x100
  up{job="windows-exporter",instance="win-a"} 1x140`,
		[]int{0, 15, 37}, []int{21, 34}, nil},
	"an operator that is no target any more": {"WindowsMachineConfigOperatorDown", `
  up{job="windows-machine-config-operator"} 1x4 _x35 1x100
  up{job="windows-exporter",instance="win-a"} 1x140`,
		[]int{0, 15, 42}, []int{26, 36}, nil},
	"no operator, and no Windows nodes": {"", `
  up{job="prometheus"} 1x140`, []int{0, 20, 60}, nil, nil},
	"a cluster in which all is well": {"", scraped + `
  wmco_instance_status{name="a",reason="Ready"} 1x140
  wmco_disruptions_stopped{reason="Succeeded"} 0x140
  wmco_instance_info{name="a",node="win-a"} 1x140
  kubelet_certificate_manager_client_ttl_seconds{node="win-a"} 90000x140
  wmco_certificate_renewal_timestamp_seconds{name="a",certificate="cloud-node-manager"} 90000x140
  wmco_certificate_expiry_timestamp_seconds{name="a",certificate="cloud-node-manager"} 99000x140
  wmco_agent_repairs_total{node="win-a"} 0x10 1x110`, []int{0, 30, 90, 130}, nil, nil},
}

// ruleGroups returns the rules of the operator for Prometheus.
func ruleGroups(t *testing.T) []rulefmt.RuleGroup {
	t.Helper()
	data, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(data, false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups.Groups
}

func alertingRules(t *testing.T) (all []*rules.AlertingRule) {
	t.Helper()
	for _, group := range ruleGroups(t) {
		for _, r := range group.Rules {
			if r.Alert == "" {
				continue
			}
			expr, err := parser.ParseExpr(r.Expr)
			if err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			all = append(all, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels),
				labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, promslog.NewNopLogger()))
		}
	}
	return all
}

// play evaluates all alerts each minute, and returns the firing alerts of each minute.
func (c alertCase) play(t *testing.T, minutes int) [][]*rules.Alert {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m"+c.series+"\n")
	t.Cleanup(func() { storage.Close() })
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), storage)
	all, firing := alertingRules(t), make([][]*rules.Alert, minutes+1)
	for minute := range firing {
		for _, rule := range all {
			at := time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
			if _, err := rule.Eval(t.Context(), 0, at, query, &url.URL{}, 0); err != nil {
				t.Fatalf("%s: %v", rule.Name(), err)
			}
			for _, a := range rule.ActiveAlerts() {
				if a.State == rules.StateFiring {
					firing[minute] = append(firing[minute], a)
				}
			}
		}
	}
	return firing
}

func TestAlerts_EachFiresAndResolves(t *testing.T) {
	fired := map[string]bool{}
	for name, c := range alertCases {
		t.Run(name, func(t *testing.T) {
			firing := c.play(t, max(slices.Max(c.silent), slices.Max(append(c.firing, 0))))
			for _, minute := range c.silent {
				if len(firing[minute]) > 0 {
					t.Errorf("in minute %d %v fires", minute, firing[minute][0].Labels)
				}
			}
			for _, minute := range c.firing {
				if len(firing[minute]) != 1 {
					t.Errorf("in minute %d %d alerts fire", minute, len(firing[minute]))
					continue
				}
				c.isAbout(t, firing[minute][0])
				fired[c.alert] = true
			}
		})
	}
	for _, rule := range alertingRules(t) {
		if !fired[rule.Name()] {
			t.Errorf("no case has %s fire", rule.Name())
		}
	}
}

// isAbout checks the labels of an alert, and that Prometheus expanded its annotations.
func (c alertCase) isAbout(t *testing.T, a *rules.Alert) {
	t.Helper()
	if got := a.Labels.Get(labels.AlertName); got != c.alert {
		t.Errorf("%s fires, want %s", got, c.alert)
	}
	for label, value := range c.about {
		if got := a.Labels.Get(label); got != value {
			t.Errorf("the alert has %s=%q, want %q", label, got, value)
		}
	}
	if a.Labels.Get("severity") == "" || a.Labels.Get("namespace") == "" {
		t.Errorf("the alert has the labels %v", a.Labels)
	}
	for _, annotation := range []string{"summary", "description", "runbook_url"} {
		text := a.Annotations.Get(annotation)
		if text == "" || strings.Contains(text, "{{") || strings.Contains(text, "error expanding") || strings.Contains(text, "<no value>") {
			t.Errorf("%s is %q", annotation, text)
		}
	}
}

func TestAlerts_EachHasRunbook(t *testing.T) {
	guide, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, group := range ruleGroups(t) {
		for _, r := range group.Rules {
			if r.Alert == "" {
				continue
			}
			count++
			anchor := "docs/conditions.md#" + strings.ToLower(r.Alert)
			if !strings.HasSuffix(r.Annotations["runbook_url"], anchor) || !strings.Contains(string(guide), "\n### "+r.Alert+"\n\n") {
				t.Errorf("%s leads to %s, want %s", r.Alert, r.Annotations["runbook_url"], anchor)
			}
		}
	}
	if count < 8 {
		t.Errorf("there are only %d alerts", count)
	}
}
