package monitoring

import "encoding/json"

// The two forms of a dashboard. OpenShift's console reads the rows of Grafana up to version 5; Grafana itself reads a
// list of panels with their places, and asks for its data source when it imports the file.
type (
	object = map[string]any
	list   = []any
)

// refresh is how often a dashboard asks again: more often than Prometheus scrapes gives nothing new.
const refresh = "30s"

// The width of Grafana's grid, and the size of a panel in it.
const (
	gridWidth, panelWidth, panelHeight = 24, 8, 7
)

// consoleDashboard is the file for OpenShift's console.
func consoleDashboard() []byte {
	var rows list
	for _, row := range Rows() {
		var panels list
		for _, p := range row.Panels {
			panels = append(panels, consolePanel(p))
		}
		rows = append(rows, object{"title": row.Title, "showTitle": true, "panels": panels})
	}
	return encoded(object{
		"title": dashboardTitle, "uid": DashboardName, "refresh": refresh, "schemaVersion": 14, "rows": rows,
		"time": object{"from": "now-1h", "to": "now"}, "templating": object{"list": list{variable("$datasource")}},
	})
}

func consolePanel(p Panel) object {
	panel := object{"title": p.Title, "type": "graph", "span": 4, "targets": targets(p)}
	switch {
	case p.Single:
		panel["type"], panel["format"] = "singlestat", p.Unit
	default:
		panel["yaxes"] = list{object{"format": p.Unit}}
	}
	return panel
}

// GrafanaDashboard is the file for Grafana.
func GrafanaDashboard() []byte {
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
	return encoded(object{
		"__inputs": list{object{"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource",
			"pluginId": "prometheus"}},
		"title": dashboardTitle, "uid": DashboardName, "refresh": refresh, "schemaVersion": 39, "panels": panels,
		"time": object{"from": "now-1h", "to": "now"}, "templating": object{"list": list{variable("${DS_PROMETHEUS}")}},
	})
}

func grafanaPanel(p Panel, x, y int) object {
	kind := "timeseries"
	if p.Single {
		kind = "stat"
	}
	return object{
		"title": p.Title, "type": kind, "targets": targets(p),
		"datasource":  object{"type": "prometheus", "uid": "${DS_PROMETHEUS}"},
		"gridPos":     object{"x": x, "y": y, "w": panelWidth, "h": panelHeight},
		"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": list{}},
	}
}

func targets(p Panel) (all list) {
	for i, q := range p.Queries {
		all = append(all, object{"expr": q.Expr, "legendFormat": q.Legend, "refId": string(rune('A' + i))})
	}
	return all
}

// variable lets the reader choose a node.
func variable(source string) object {
	return object{
		"name": nodeVariable, "label": "Node", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
		"includeAll": false, "multi": false, "query": "label_values(" + nodesQuery + ", " + nodeVariable + ")",
	}
}

func encoded(dashboard object) []byte {
	data, err := json.MarshalIndent(dashboard, "", "  ")
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return append(data, '\n')
}
