// Lab-prometheus-operator replaces the prometheus-operator and the reloader of the Prometheus of OpenShift's
// cluster monitoring. It reads the ServiceMonitors and PrometheusRules of monitored namespaces, writes the
// configuration and the rules for Prometheus, and lists the kubelets. The configuration comes from the
// prometheus-operator's own generator, the list from its own controller. It creates no pods, which the lab does
// not run, and reads no Prometheus object: the object of OpenShift is built in.
//
// It is a separate module, because Prometheus does not compile with the version of client-go that the
// prometheus-operator needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab-prometheus-operator:", err)
		os.Exit(1)
	}
}

// run keeps the files up to date until the context is done.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("lab-prometheus-operator", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` with the right to read Namespaces, ServiceMonitors and PrometheusRules")
	root := flags.String("root", "", "`folder` with the files of Prometheus' pod, each under its path")
	interval := flags.String("interval", "", "how often to scrape and evaluate, instead of what the objects say: a `duration` such as 1s")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" || *root == "" {
		return errors.New("--kubeconfig or --root is missing")
	}
	klog.SetOutput(io.Discard) // relevant errors of the API server are returned
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kubelets, err := newKubelets(config, logger)
	if err != nil {
		return err
	}
	f := &follower{client: client, log: logger,
		settings: settings{apiServer: config.Host, root: *root, interval: monitoringv1.Duration(*interval)}}
	var group sync.WaitGroup
	group.Go(func() { f.run(ctx) })
	err = kubelets.Run(ctx)
	group.Wait()
	return err
}
