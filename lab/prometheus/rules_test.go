// Package prometheus evaluates the recording rules and alerts for Windows nodes, the labels of their series,
// and the queries of the dashboards, with the real Prometheus. It is a separate module, because Prometheus is a
// large dependency, and reads its input from files that tests of the operator keep up to date.
package prometheus

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile = "testdata/rules.yaml"
	// expressionsFile is also the source of a part of docs/metrics.md.
	expressionsFile = "testdata/expressions.yaml"
	// scrape is the interval of the ServiceMonitor.
	scrape = 30 * time.Second
	// minutes is the duration of the scraped data.
	minutes = 15
)

// exporter contains the metrics of windows_exporter 0.31 on a node with two processors, two volumes with
// letters, one without, and a pod with one container. TARGET is replaced by the labels that the scrape adds.
const exporter = `load 30s
  windows_cpu_time_total{core="0,0",mode="idle",TARGET} 0+27x30
  windows_cpu_time_total{core="0,1",mode="idle",TARGET} 0+27x30
  windows_cpu_time_total{core="0,0",mode="user",TARGET} 0+2x30
  windows_cpu_time_total{core="0,1",mode="user",TARGET} 0+2x30
  windows_cpu_time_total{core="0,0",mode="privileged",TARGET} 0+1x30
  windows_cpu_time_total{core="0,1",mode="privileged",TARGET} 0+1x30
  windows_cpu_time_total{core="0,0",mode="interrupt",TARGET} 0+0.5x30
  windows_cpu_time_total{core="0,1",mode="dpc",TARGET} 0+0.5x30
  windows_memory_physical_total_bytes{TARGET} 1000x30
  windows_memory_physical_free_bytes{TARGET} 300x30
  windows_memory_available_bytes{TARGET} 400x30
  windows_logical_disk_size_bytes{volume="C:",TARGET} 500x30
  windows_logical_disk_size_bytes{volume="D:",TARGET} 100x30
  windows_logical_disk_size_bytes{volume="HarddiskVolume3",TARGET} 7x30
  windows_logical_disk_free_bytes{volume="C:",TARGET} 200x30
  windows_logical_disk_free_bytes{volume="D:",TARGET} 90x30
  windows_logical_disk_free_bytes{volume="HarddiskVolume3",TARGET} 3x30
  windows_logical_disk_idle_seconds_total{volume="C:",TARGET} 0+24x30
  windows_logical_disk_read_bytes_total{volume="C:",TARGET} 0+300x30
  windows_logical_disk_write_bytes_total{volume="C:",TARGET} 0+600x30
  windows_logical_disk_reads_total{volume="C:",TARGET} 0+3x30
  windows_logical_disk_writes_total{volume="C:",TARGET} 0+6x30
  windows_net_bytes_received_total{nic="Ethernet 2",TARGET} 0+3000x30
  windows_net_bytes_sent_total{nic="Ethernet 2",TARGET} 0+1500x30
  windows_net_packets_received_discarded_total{nic="Ethernet 2",TARGET} 0+30x30
  windows_net_packets_outbound_discarded_total{nic="Ethernet 2",TARGET} 0+60x30
  windows_system_boot_time_timestamp{TARGET} 0x30
  windows_container_cpu_usage_seconds_total{container="web",pod="web-1",container_id="c",hostprocess="false",POD} 0+15x30
  windows_container_cpu_usage_seconds_total{container="",pod="web-1",container_id="pause",hostprocess="false",POD} 0+9x30
  windows_container_memory_usage_private_working_set_bytes{container="web",pod="web-1",container_id="c",POD} 80x30
  windows_container_network_receive_bytes_total{container="web",pod="web-1",container_id="c",interface="eth",POD} 0+60x30
  windows_container_network_transmit_bytes_total{container="web",pod="web-1",container_id="c",interface="eth",POD} 0+90x30
`

// cluster contains rules of OpenShift's own monitoring that read the series of every job.
const cluster = `groups:
- name: kube-prometheus-node-recording.rules
  rules:
  - record: instance:node_cpu:rate:sum
    expr: sum(rate(node_cpu_seconds_total{mode!="idle",mode!="iowait",mode!="steal"}[3m])) BY (instance)
  - record: instance:node_network_receive_bytes:rate:sum
    expr: sum(rate(node_network_receive_bytes_total[3m])) BY (instance)
  - record: instance:node_network_transmit_bytes:rate:sum
    expr: sum(rate(node_network_transmit_bytes_total[3m])) BY (instance)
  - record: instance:node_cpu:ratio
    expr: sum(rate(node_cpu_seconds_total{mode!="idle",mode!="iowait",mode!="steal"}[5m])) WITHOUT (cpu, mode) / ON(instance) GROUP_LEFT() count(sum(node_cpu_seconds_total) BY (instance, cpu)) BY (instance)
`

// monitored is a Prometheus after scraping the exporter and evaluating the rules.
type monitored struct {
	*testing.T
	engine  *promql.Engine
	storage *teststorage.TestStorage
	end     time.Time
	records []string
}

func newMonitored(t *testing.T, more ...string) *monitored {
	t.Helper()
	data, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	const target = `job="windows-exporter",instance="win-a",node="win-a",endpoint="metrics",service="windows-exporter"`
	series := strings.NewReplacer("TARGET", target+`,namespace="openshift-windows-machine-config-operator"`,
		"POD", target+`,namespace="shop"`).Replace(exporter + strings.Join(more, ""))
	m := &monitored{T: t, storage: promqltest.LoadedStorage(t, series), end: time.Unix(0, 0).Add(minutes * time.Minute),
		engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)}
	t.Cleanup(func() { m.storage.Close() })
	ours := parse(t, string(data))
	for _, rule := range ours {
		m.records = append(m.records, rule.Name())
	}
	m.evaluate(append(ours, parse(t, cluster)...))
	return m
}

func parse(t *testing.T, file string) (parsed []*rules.RecordingRule) {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(file), false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Record == "" {
				continue // an alert
			}
			expr, err := parser.ParseExpr(rule.Expr)
			if err != nil {
				t.Fatalf("%s: %v", rule.Record, err)
			}
			parsed = append(parsed, rules.NewRecordingRule(rule.Record, expr, labels.EmptyLabels()))
		}
	}
	return parsed
}

// evaluate evaluates the rules every 30 seconds, as Prometheus does.
func (m *monitored) evaluate(all []*rules.RecordingRule) {
	m.Helper()
	query := rules.EngineQueryFunc(m.engine, m.storage)
	for at := time.Unix(0, 0).Add(scrape); !at.After(m.end); at = at.Add(scrape) {
		for _, rule := range all {
			vector, err := rule.Eval(m.Context(), 0, at, query, nil, 0)
			if err != nil {
				m.Fatalf("%s: %v", rule.Name(), err)
			}
			appender := m.storage.Appender(m.Context())
			for _, sample := range vector {
				// Another rule that records the same series causes a second sample at the same time.
				if _, err := appender.Append(0, sample.Metric, sample.T, sample.F); err != nil {
					m.Fatalf("%s: %v", rule.Name(), err)
				}
			}
			if err := appender.Commit(); err != nil {
				m.Fatalf("%s: %v", rule.Name(), err)
			}
		}
	}
}

func (m *monitored) ask(expr string) promql.Vector {
	m.Helper()
	query, err := m.engine.NewInstantQuery(m.Context(), m.storage, nil, expr, m.end)
	if err != nil {
		m.Fatalf("%s: %v", expr, err)
	}
	result := query.Exec(m.Context())
	vector, err := result.Vector()
	if err != nil {
		m.Fatalf("%s: %v", expr, err)
	}
	return vector
}

// expression is a query about Windows nodes; see the file.
type expression struct {
	Where, Shows, Expr, None string
	Value                    float64
}

// The console queries these metrics for the list of nodes, the page of a node and the page of a pod. The
// cluster's rules and the dashboards for Linux nodes also read them., L-17
func TestRules_ConsoleHasDataOfWindowsNodes(t *testing.T) {
	data, err := os.ReadFile(expressionsFile)
	if err != nil {
		t.Fatal(err)
	}
	var expressions []expression
	if err := yaml.UnmarshalStrict(data, &expressions); err != nil || len(expressions) < 20 {
		t.Fatalf("%d expressions, error %v", len(expressions), err)
	}
	m := newMonitored(t)
	for _, e := range expressions {
		t.Run(e.Where+": "+e.Shows, func(t *testing.T) {
			got := m.ask(e.Expr)
			if e.None != "" {
				if len(got) > 0 {
					t.Errorf("%s gives %v, and the file says that there is none: %s", e.Expr, got, e.None)
				}
				return
			}
			if len(got) != 1 || got[0].F < e.Value*0.9999 || got[0].F > e.Value*1.0001 {
				t.Errorf("%s gives %v, want one series of %v", e.Expr, got, e.Value)
			}
		})
	}
	for _, record := range m.records {
		if len(m.ask(record)) == 0 {
			t.Errorf("%s has no data", record)
		}
	}
}
