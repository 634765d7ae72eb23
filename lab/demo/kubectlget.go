package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// printTable prints a list as kubectl get does.
func (d *demo) printTable(ctx context.Context, path string) error {
	config := rest.CopyConfig(d.env.Config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	rests, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	table := &metav1.Table{}
	err = rests.Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Into(table)
	if err != nil {
		return fmt.Errorf("list %s: %w", path, err)
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, d.output.writer)
}
