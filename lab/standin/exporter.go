package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// runExporter serves metrics with the names of windows_exporter. R-087
func (t *table) runExporter(ctx context.Context, p *node.Process, e payload.Executable) int {
	flags := pflag.NewFlagSet("windows_exporter", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("web.listen-address", ":9182", "")
	collectors := flags.String("collectors.enabled", "cpu,logical_disk,memory,net,os,service,system", "")
	webConfig := flags.String("web.config.file", "", "")
	for _, name := range strings.Fields("config.file log.level log.format log.file process.priority process.memory-limit telemetry.max-requests") {
		flags.String(name, "", "")
	}
	for _, name := range []string{"web.disable-exporter-metrics", "debug.enabled", "config.file.insecure-skip-verify"} {
		flags.Bool(name, false, "")
	}
	var args []string
	for _, arg := range p.Args {
		if !strings.HasPrefix(arg, "--collector.") { // Each collector has its own flags.
			args = append(args, arg)
		}
	}
	if err := flags.Parse(args); err != nil {
		return reportFailure(p, "windows_exporter: error: %v, try --help", err)
	}
	_, portText, err := net.SplitHostPort(*address)
	port, portErr := strconv.Atoi(portText)
	if err := errors.Join(err, portErr); err != nil {
		return reportFailure(p, "windows_exporter: listen address %s: %v", *address, err)
	}
	ticking := t.Clock
	if p.Clock != nil {
		ticking = p.Clock
	}
	handler := http.NewServeMux()
	handler.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if err := writeMetrics(r.Context(), w, p, e.Version, ticking.Now(), strings.Split(*collectors, ",")); err != nil {
			fmt.Fprintf(p.Stderr, "level=error msg=%q\r\n", err)
		}
	})
	handler.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) })
	serving, err := loadWebConfig(p.Machine, *webConfig)
	if err != nil {
		return reportFailure(p, "windows_exporter: %v", err)
	}
	if err := p.Machine.ServeLocal(port, serving.restrictLocal(handler)); err != nil {
		return reportFailure(p, "windows_exporter: %v", err)
	}
	listener, err := p.Machine.Listen(port)
	if err != nil {
		return reportFailure(p, "windows_exporter: %v", err)
	}
	listener = serving.wrapListener(listener)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return reportFailure(p, "windows_exporter: %v", err)
	}
	return 0
}
