package monitoring

import (
	"os"
	"testing"
)

// The dashboard for Grafana is an example that the operator does not read. It has the panels of the console's
// dashboard.
func TestGeneratedDashboardForGrafana(t *testing.T) {
	const path = "../../../examples/grafana-windows-nodes.json"
	want := string(grafanaDashboard())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what the panels are (%v): run `make generate` and commit the result", path, err)
	}
}

// The width of Grafana's grid, and the size of a panel in the grid.
const (
	gridWidth, panelWidth, panelHeight = 24, 8, 7
)

// grafanaDashboard returns the file for Grafana. Grafana reads a list of panels with positions, and prompts for
// a data source at the import of the file.
func grafanaDashboard() []byte {
	var panels list
	y := 0
	for _, row := range Rows() {
		panels = append(panels, object{"type": "row", "title": row.Title, "collapsed": false, "panels": list{},
			"gridPos": object{"x": 0, "y": y, "w": gridWidth, "h": 1}})
		y++
		for i, p := range row.Panels {
			x := i * panelWidth % gridWidth
			if i > 0 && x == 0 {
				y += panelHeight
			}
			panels = append(panels, grafanaPanel(p, x, y))
		}
		y += panelHeight
	}
	for i := range panels {
		if panel, ok := panels[i].(object); ok {
			panel["id"] = i + 1
		}
	}
	return encodeDashboard(object{
		"__inputs": list{object{"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource",
			"pluginId": "prometheus"}},
		"title": dashboardTitle, "uid": DashboardName, "refresh": refresh, "schemaVersion": 39, "panels": panels,
		"time": object{"from": "now-1h", "to": "now"}, "templating": object{"list": list{dashboardVariable("${DS_PROMETHEUS}")}},
	})
}

func grafanaPanel(p Panel, x, y int) object {
	kind := "timeseries"
	if p.Single {
		kind = "stat"
	}
	return object{
		"title": p.Title, "type": kind, "targets": consoleTargets(p),
		"datasource":  object{"type": "prometheus", "uid": "${DS_PROMETHEUS}"},
		"gridPos":     object{"x": x, "y": y, "w": panelWidth, "h": panelHeight},
		"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": list{}},
	}
}
