// Package checks verifies a node: it runs the checks of a spec, and waits for slow checks. The package repairs
// nothing, and leaves the interpretation of failed checks to the caller.
package checks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// testEndpoint is the HNS endpoint that a check creates and deletes.
const testEndpoint = "wmco-check"

// checker runs the checks of a spec with resolved placeholders.
type checker struct {
	*Verifier
	spec  nodespec.NodeSpec
	facts plan.Facts
}

// runCheck runs a check. The message describes the finding, or the reason for the failure.
func (c *checker) runCheck(ctx context.Context, check nodespec.Check) agentapi.CheckResult {
	result := agentapi.CheckResult{Name: check.Name, Advisory: check.Advisory}
	var message string
	tell := func(format string, arguments ...any) {
		c.Answer.Detail(checkStep(check), fmt.Sprintf(format, arguments...))
	}
	attempt := timeouts.Operation{Timeout: timeouts.CheckTimeout, What: "running check " + check.Name, Progress: tell}
	err := attempt.Run(ctx, c.Clock, func(ctx context.Context) (err error) {
		message, err = c.evaluateCheck(ctx, check)
		return err
	})
	if err != nil {
		result.Message = withHint(err.Error(), check.Hint)
		return result
	}
	result.Passed, result.Message = true, message
	return result
}

func (c *checker) evaluateCheck(ctx context.Context, check nodespec.Check) (string, error) {
	switch check.Kind {
	case nodespec.CheckService:
		return c.checkService(ctx, check.Target)
	case nodespec.CheckHTTP:
		return c.checkURL(ctx, check.Target, check.ClientCertificate)
	case nodespec.CheckContainerRuntime:
		return c.checkRuntime(ctx, check.Target)
	case nodespec.CheckHNSNetwork:
		return c.checkNetwork(ctx, check.Target)
	case nodespec.CheckHNSNetworkReach:
		return c.checkNetworkReach(ctx, check.Target)
	case nodespec.CheckFile:
		return c.checkFile(ctx, check.Target)
	case nodespec.CheckEndpoint:
		return c.checkEndpoint(ctx, check.Target)
	case nodespec.CheckExclusions:
		return c.Source.Antivirus.Check(ctx, c.spec)
	}
	return "", fmt.Errorf("this agent (%s) does not support checks of kind %q", c.Source.Program.Version, check.Kind)
}

// withHint returns the reason for a failed check with its hint.
func withHint(message, hint string) string {
	if hint == "" {
		return message
	}
	return strings.TrimRight(message, ". ") + ". " + hint
}

func (c *checker) checkService(ctx context.Context, name string) (string, error) {
	found, err := c.Source.Host.Services.Query(ctx, name)
	if err != nil {
		return "", fmt.Errorf("query service %s: %w", name, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("service %s does not exist", name)
	}
	service := found[0]
	wanted := service.CommandLine
	for _, desired := range c.spec.Services {
		if strings.EqualFold(desired.Name, name) {
			wanted = desired.CommandLine
		}
	}
	switch {
	case service.State != host.ServiceRunning:
		return "", fmt.Errorf("service %s is not running (%s, last exit code %d); see %s%s", name, service.State, service.ExitCode,
			nodespec.LogDirectory(name), hostutil.DescribeForeignRuntime(ctx, c.Source.Host.Probes, name))
	case service.RunningCommandLine != "" && !nodespec.IsRunningAs(service.RunningCommandLine, wanted):
		return "", fmt.Errorf("service %s runs with an unexpected command line", name)
	}
	return "service " + name + " runs", nil
}

// checkURL requests a URL, with the client certificate from a file if the server demands one. If the file is
// missing, the error of the server is reported.
func (c *checker) checkURL(ctx context.Context, url, certificate string) (string, error) {
	var client []byte
	if certificate != "" {
		var err error
		if client, err = hostutil.ReadFile(ctx, c.Source.Host.Files, certificate); err != nil {
			return "", err
		}
	}
	status, body, err := c.Source.Host.Probes.HTTPGet(ctx, url, client)
	if err != nil {
		return "", fmt.Errorf("%s does not respond: %w", url, err)
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("%s responds with status %d: %s", url, status, strings.TrimSpace(body))
	}
	return url + " responds with status 200", nil
}

// checkRuntime queries the runtime behind the pipe only while the node's own service runs: another runtime may serve
// the pipe.
func (c *checker) checkRuntime(ctx context.Context, endpoint string) (string, error) {
	if _, err := c.checkService(ctx, nodespec.ServiceContainerd); err != nil {
		return "", err
	}
	status, err := c.Source.Host.Probes.ContainerRuntime(ctx, endpoint)
	if err != nil {
		return "", fmt.Errorf("the container runtime at %s does not respond: %w", endpoint, err)
	}
	if !status.Ready {
		return "", fmt.Errorf("%s %s reports that it is not ready", status.Name, status.Version)
	}
	return status.Name + " " + status.Version + " is ready", nil
}

func (c *checker) checkNetwork(ctx context.Context, name string) (string, error) {
	network, err := c.findNetwork(ctx, name)
	if err != nil {
		return "", err
	}
	if subnet := c.spec.Network.PodSubnet; network.Subnet != subnet {
		return "", fmt.Errorf("HNS network %s has the subnet %s instead of the node's subnet %q", name, network.Subnet, subnet)
	}
	return "HNS network " + name + " has the subnet " + network.Subnet, nil
}

// checkNetworkReach checks the parts of the network that HNS need not report. Findings name their own remedies.
func (c *checker) checkNetworkReach(ctx context.Context, name string) (string, error) {
	network, err := c.findNetwork(ctx, name)
	if err != nil {
		return "", err
	}
	if mismatch := plan.DescribeAdapterMismatch(network, c.spec.NodeIP, c.facts.System.Addresses); mismatch != "" {
		return "", errors.New(mismatch)
	}
	if network.NoHostRoute {
		return "", fmt.Errorf("HNS network %s has no policy HostRoute, so the host and the probes of the kubelet may not reach the node's pods. "+
			"If probes fail, restart the host: hybrid-overlay-node adds the policy when it creates the network", name)
	}
	return "HNS reports no problem with network " + name, nil
}

func (c *checker) findNetwork(ctx context.Context, name string) (host.HNSNetwork, error) {
	networks, err := c.Source.Host.Networks.Networks(ctx)
	if err != nil {
		return host.HNSNetwork{}, fmt.Errorf("list HNS networks: %w", err)
	}
	i := slices.IndexFunc(networks, func(n host.HNSNetwork) bool { return strings.EqualFold(n.Name, name) })
	if i < 0 {
		return host.HNSNetwork{}, fmt.Errorf("HNS network %s does not exist", name)
	}
	return networks[i], nil
}

func (c *checker) checkFile(ctx context.Context, path string) (string, error) {
	data, err := hostutil.ReadFile(ctx, c.Source.Host.Files, path)
	if err != nil {
		return "", err
	}
	if data == nil {
		return "", fmt.Errorf("file %s does not exist", path)
	}
	for _, file := range c.spec.Files {
		if nodespec.IsSamePath(file.Path, path) && plan.TextDigest(data) != plan.TextDigest(file.Bytes()) {
			return "", fmt.Errorf("file %s does not have the expected content", path)
		}
	}
	return "file " + path + " has the expected content", nil
}

// checkEndpoint creates and deletes an endpoint on the network, which is the first step of starting a pod.
func (c *checker) checkEndpoint(ctx context.Context, network string) (string, error) {
	made, err := c.Source.Host.Networks.CreateEndpoint(ctx, network, testEndpoint, "")
	if errors.Is(err, host.ErrExist) {
		// An earlier check was killed.
		if err := c.deleteTestEndpoint(ctx); err != nil {
			return "", fmt.Errorf("delete the test endpoint %s: %w", testEndpoint, err)
		}
		made, err = c.Source.Host.Networks.CreateEndpoint(ctx, network, testEndpoint, "")
	}
	if err != nil {
		return "", fmt.Errorf("create a test endpoint on HNS network %s: %w", network, err)
	}
	if err := c.deleteTestEndpoint(ctx); err != nil {
		return "", fmt.Errorf("delete the test endpoint on HNS network %s: %w", network, err)
	}
	return "a test endpoint with address " + made.Address + " was created on HNS network " + network, nil
}

// deleteTestEndpoint deletes the endpoint if it exists.
func (c *checker) deleteTestEndpoint(ctx context.Context) error {
	err := c.Source.Host.Networks.DeleteEndpoint(ctx, testEndpoint)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}
