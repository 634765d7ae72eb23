package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// table asks the API server for a list as kubectl does, in columns.
func (d *demo) table(ctx context.Context, path string) ([]string, error) {
	httpClient, err := rest.HTTPClientFor(d.rig.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.rig.Config.Host+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for %s: the API server answered %s: %w", path, response.Status, err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(data, table); err != nil {
		return nil, fmt.Errorf("read the table of %s: %w", path, err)
	}
	return tableLines(table), nil
}

// tableLines returns the columns that kubectl shows without -o wide.
func tableLines(table *metav1.Table) []string {
	cells := make([][]string, len(table.Rows)+1)
	for i, column := range table.ColumnDefinitions {
		if column.Priority != 0 {
			continue
		}
		cells[0] = append(cells[0], strings.ToUpper(column.Name))
		for j, r := range table.Rows {
			text := ""
			if i < len(r.Cells) && r.Cells[i] != nil {
				text = fmt.Sprint(r.Cells[i])
			}
			cells[j+1] = append(cells[j+1], text)
		}
	}
	if len(cells[0]) == 0 {
		return nil
	}
	return columns(cells, 0)
}
