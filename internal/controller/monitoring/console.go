package monitoring

import "encoding/json"

// OpenShift's console reads the rows of Grafana up to version 5.
type (
	object = map[string]any
	list   = []any
)

// refresh is the refresh interval of a dashboard. It equals the scrape interval: Prometheus has no newer data.
const refresh = "30s"

// consoleDashboard returns the dashboard file for OpenShift's console.
func consoleDashboard() []byte {
	var rows list
	for _, row := range Rows() {
		var panels list
		for _, p := range row.Panels {
			panels = append(panels, consolePanel(p))
		}
		rows = append(rows, object{"title": row.Title, "showTitle": true, "panels": panels})
	}
	return encodeDashboard(object{
		"title": dashboardTitle, "uid": DashboardName, "refresh": refresh, "schemaVersion": 14, "rows": rows,
		"time": object{"from": "now-1h", "to": "now"}, "templating": object{"list": list{dashboardVariable("$datasource")}},
	})
}

func consolePanel(p Panel) object {
	panel := object{"title": p.Title, "type": "graph", "span": 4, "targets": consoleTargets(p)}
	switch {
	case p.Single:
		panel["type"], panel["format"] = "singlestat", p.Unit
	default:
		panel["yaxes"] = list{object{"format": p.Unit}}
	}
	return panel
}

func consoleTargets(p Panel) (all list) {
	for i, q := range p.Queries {
		all = append(all, object{"expr": q.Expr, "legendFormat": q.Legend, "refId": string(rune('A' + i))})
	}
	return all
}

// dashboardVariable returns the variable that selects a node.
func dashboardVariable(source string) object {
	return object{
		"name": nodeVariable, "label": "Node", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
		"includeAll": false, "multi": false, "query": "label_values(" + nodesQuery + ", " + nodeVariable + ")",
	}
}

func encodeDashboard(dashboard object) []byte {
	data, err := json.MarshalIndent(dashboard, "", "  ")
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return append(data, '\n')
}
