package standin

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// csiProxy runs without function: the lab has no volumes.
func (t *table) csiProxy(ctx context.Context, p *node.Process, _ payload.Executable) int {
	flags := flag.NewFlagSet("csi-proxy", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	service := flags.Bool("windows-service", false, "")
	logPath := flags.String("log_file", "", "")
	flags.Bool("logtostderr", true, "")
	flags.Bool("alsologtostderr", false, "")
	for _, name := range strings.Fields("v vmodule stderrthreshold log_dir log_file_max_size kubelet-path kubelet-csi-plugins-path kubelet-pod-path") {
		flags.String(name, "", "")
	}
	if err := flags.Parse(p.Args); err != nil {
		return reportFailure(p, "csi-proxy: %v", err)
	}
	if err := logTo(p, *logPath); err != nil {
		return reportFailure(p, "csi-proxy: %v", err)
	}
	if !isServiceFlagValid(p, *service) {
		return reportFailure(p, "csi-proxy runs as a service without -windows-service")
	}
	return awaitStop(ctx)
}
