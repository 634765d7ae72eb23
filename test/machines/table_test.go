package machines

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	machinev1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// getTable returns the output of `kubectl get` for a resource. The API server formats the columns.
func (l lab) getTable(resource string) string {
	l.Helper()
	config := rest.CopyConfig(l.Config)
	config.GroupVersion, config.APIPath = &machinev1.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	l.requireNoError(err)
	raw, err := api.Get().Namespace(v1alpha1.MachineNamespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(l.Context())
	l.requireNoError(err)
	table := &metav1.Table{}
	l.requireNoError(json.Unmarshal(raw, table))
	var b strings.Builder
	writer := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	line := func(cell func(i int) any) {
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				fmt.Fprintf(writer, "%v\t", cell(i))
			}
		}
		fmt.Fprintln(writer)
	}
	line(func(i int) any { return strings.ToUpper(table.ColumnDefinitions[i].Name) })
	for _, row := range table.Rows {
		line(func(i int) any { return row.Cells[i] })
	}
	l.requireNoError(writer.Flush())
	return b.String()
}
