// Lab-prometheus runs the real Prometheus with the configuration that lab-prometheus-operator writes, and a
// page with the console's dashboards.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/windows-machine-config/wmco/lab/prometheus/page"
	"github.com/windows-machine-config/wmco/lab/prometheus/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab-prometheus:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	kubeconfig, config, data, listen, url string
	listenFD                              int
	discovery                             time.Duration
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("lab-prometheus", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with the right to read dashboards")
	flags.StringVar(&o.config, "config.file", "", "`file` with the configuration, which is followed from when it is there")
	flags.StringVar(&o.data, "storage.tsdb.path", "", "`folder` for the samples")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of API and page")
	flags.IntVar(&o.listenFD, "listen-fd", 0, "inherited `file` to listen on, instead of an address")
	flags.StringVar(&o.url, "url-file", "", "`file` to write the address of API and page to, once they are served")
	flags.DurationVar(&o.discovery, "discovery-interval", 0, "how soon targets that were found are scraped (default: as Prometheus)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for name, value := range map[string]string{"kubeconfig": o.kubeconfig, "config.file": o.config, "storage.tsdb.path": o.data} {
		if value == "" {
			return o, fmt.Errorf("--%s is missing", name)
		}
	}
	return o, nil
}

// run serves until the context is done.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	klog.SetOutput(io.Discard) // relevant errors of the API server are in the log of the discovery
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read --kubeconfig: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	listener, err := o.listener()
	if err != nil {
		return err
	}
	address := &url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/"}
	prometheus, err := server.New(server.Options{Dir: o.data, URL: address, Log: log, DiscoveryInterval: o.discovery})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", prometheus.Handler())
	mux.Handle("POST /lab/forward", prometheus.ForwardHandler())
	mux.Handle("/", page.Handler(client))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer web.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { cancel(web.Serve(listener)) }()
	go (&reloader{file: o.config, apply: prometheus.Apply, log: log}).run(ctx)
	if o.url != "" {
		if err := os.WriteFile(o.url, []byte(address.String()), 0o600); err != nil {
			cancel(fmt.Errorf("write --url-file: %w", err))
		}
	}
	err = prometheus.Run(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}

func (o options) listener() (net.Listener, error) {
	if o.listenFD == 0 {
		listener, err := net.Listen("tcp", o.listen)
		if err != nil {
			return nil, fmt.Errorf("listen for users of Prometheus: %w", err)
		}
		return listener, nil
	}
	file := os.NewFile(uintptr(o.listenFD), "listener")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take the inherited file %d as a listener: %w", o.listenFD, err)
	}
	return listener, nil
}
