package standin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/standin/node"
)

// containerdConfig is the part of containerd's configuration that the simulated containerd reads.
type containerdConfig struct {
	Version int    `toml:"version"`
	Root    string `toml:"root"`
	State   string `toml:"state"`
	GRPC    struct {
		Address string `toml:"address"`
	} `toml:"grpc"`
	Plugins map[string]any `toml:"plugins"`
}

// runContainerd serves the runtime interface and simulates pods without containers. R-091
func (t *table) runContainerd(ctx context.Context, p *node.Process, e payload.Executable) int {
	flags := flag.NewFlagSet("containerd", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	configPath := flags.String("config", `C:\Program Files\containerd\config.toml`, "")
	flags.StringVar(configPath, "c", *configPath, "")
	logPath := flags.String("log-file", "", "")
	for _, name := range []string{"log-level", "l", "address", "a", "root", "state", "service-name"} {
		flags.String(name, "", "")
	}
	service := flags.Bool("run-service", false, "")
	if err := flags.Parse(p.Args); err != nil {
		return reportFailure(p, "containerd: %v", err)
	}
	if err := logTo(p, *logPath); err != nil {
		return reportFailure(p, "containerd: %v", err)
	}
	if !isServiceFlagValid(p, *service) {
		return reportFailure(p, "containerd: runs as a service without --run-service")
	}
	config, err := loadContainerdConfig(p, *configPath)
	if err != nil {
		return reportFailure(p, `level=fatal msg="containerd: %v"`, err)
	}
	if err := createContent(p, config); err != nil {
		return reportFailure(p, `level=fatal msg="containerd: %v"`, err)
	}
	runtime := t.runtimeOf(p.Machine)
	runtime.attachProcess(p, config.cniDirectory())
	defer runtime.detachProcess(p)
	err = p.Machine.ServeRuntime(config.endpointURL(), func() host.RuntimeStatus {
		return host.RuntimeStatus{Name: "containerd", Version: e.Version, Ready: true}
	})
	if err != nil {
		return reportFailure(p, `level=fatal msg="containerd: failed to get listener for main endpoint: %v"`, err)
	}
	fmt.Fprintf(p.Stderr, "level=info msg=\"containerd successfully booted\" version=%s\r\n", e.Version)
	logProxy(p)
	code := awaitStop(ctx)
	fmt.Fprint(p.Stderr, "level=info msg=\"stopped\"\r\n")
	return code
}

// logProxy logs the proxy for image pulls: Go's HTTP client reads the proxy from the environment once, at the
// start.
func logProxy(p *node.Process) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		value := p.Environ[name]
		if proxy, err := url.Parse(value); err == nil && proxy.User != nil {
			value = proxy.Redacted()
		}
		if value != "" {
			fmt.Fprintf(p.Stderr, "level=info msg=\"images are pulled with %s=%s\"\r\n", name, value)
		}
	}
}

func loadContainerdConfig(p *node.Process, path string) (containerdConfig, error) {
	config := containerdConfig{Root: `C:\ProgramData\containerd\root`, State: `C:\ProgramData\containerd\state`}
	config.GRPC.Address = `\\.\pipe\containerd-containerd`
	data, err := p.Machine.ReadFile(path)
	if err != nil {
		return config, fmt.Errorf("failed to load TOML: %s: %w", path, err)
	}
	if err := toml.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("failed to load TOML: %s: %w", path, err)
	}
	if config.Version < 2 || config.Version > 4 {
		return config, fmt.Errorf("failed to load TOML: %s: unsupported config version %d", path, config.Version)
	}
	return config, nil
}

// createContent creates content in the directories of containerd that a removal must delete.
func createContent(p *node.Process, config containerdConfig) error {
	drive := p.Machine
	for _, dir := range []string{
		config.Root + `\io.containerd.content.v1.content\blobs`,
		config.Root + `\io.containerd.snapshotter.v1.windows\snapshots`,
		config.Root + `\io.containerd.metadata.v1.bolt`, config.State + `\io.containerd.runtime.v2.task`,
	} {
		if err := drive.MkdirAll(dir); err != nil {
			return err
		}
	}
	database := config.Root + `\io.containerd.metadata.v1.bolt\meta.db`
	if err := drive.CheckExists(database); err == nil {
		return p.Machine.Hold(database)
	}
	if err := drive.WriteFile(database, []byte("images and containers of the lab")); err != nil {
		return err
	}
	return p.Machine.Hold(database)
}

// endpointURL returns the address in the form of clients: \\.\pipe\name becomes npipe://./pipe/name.
func (c containerdConfig) endpointURL() string {
	return "npipe:" + strings.ReplaceAll(c.GRPC.Address, `\`, "/")
}

// cniDirectory returns the directory with the configuration of the pod network.
func (c containerdConfig) cniDirectory() string {
	for _, plugin := range []string{"io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"} {
		section, _ := c.Plugins[plugin].(map[string]any)
		cni, _ := section["cni"].(map[string]any)
		if directory, ok := cni["conf_dir"].(string); ok {
			return directory
		}
	}
	return `C:\Program Files\containerd\cni\conf`
}
