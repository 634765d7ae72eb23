//go:build windows

package windows

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/Microsoft/go-winio"
	"github.com/Microsoft/hcsshim/hcn"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/hosttest"
	"github.com/windows-machine-config/wmco/lab/wine/standin/pipe"
)

func serveHTTP(t *testing.T) func(http.Handler) (string, error) {
	return func(handler http.Handler) (string, error) {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL, nil
	}
}

// listenPipe listens on a named pipe with go-winio, like containerd. Under Wine, package pipe is used because the
// listener of go-winio never accepts.
func listenPipe(name string) (net.Listener, error) {
	if hosttest.Environment(contract.environment) == hosttest.Wine {
		return pipe.Listen(name)
	}
	return winio.ListenPipe(name, nil)
}

// serveRuntime starts a container runtime with two methods behind a named pipe, like containerd.
func serveRuntime(t *testing.T) func(host.RuntimeStatus) (string, error) {
	return func(status host.RuntimeStatus) (string, error) {
		listener, err := listenPipe(`\\.\pipe\wmco-contract`)
		if err != nil {
			return "", fmt.Errorf("listen on a named pipe: %w", err)
		}
		server := grpc.NewServer()
		runtimeapi.RegisterRuntimeServiceServer(server, &contractRuntime{status: status})
		go func() { _ = server.Serve(listener) }() // ends with Stop
		t.Cleanup(server.Stop)
		return "npipe://./pipe/wmco-contract", nil
	}
}

type contractRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	status host.RuntimeStatus
}

// Version implements the CRI.
func (s *contractRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: s.status.Name, RuntimeVersion: s.status.Version,
		RuntimeApiVersion: "v1"}, nil
}

// Status implements the CRI.
func (s *contractRuntime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: s.status.Ready}, {Type: runtimeapi.NetworkReady, Status: s.status.Ready},
	}}}, nil
}

// createNetwork creates an HNS network like hybrid-overlay-node, but without a change to a network adapter.
func createNetwork(ctx context.Context, h host.Host, network host.HNSNetwork) error {
	state, err := h.Features.State(ctx, "Containers")
	if err == nil && state != host.FeatureEnabled {
		return fmt.Errorf("%w: HNS comes with the feature Containers, which is %s", hosttest.ErrNotRun, state)
	}
	subnet, err := netip.ParsePrefix(network.Subnet)
	if err != nil {
		return err
	}
	gateway := subnet.Addr().Next()
	_, err = (&hcn.HostComputeNetwork{
		Name: network.Name, Type: hcn.NetworkType(network.Type),
		Ipams: []hcn.Ipam{{Type: "Static", Subnets: []hcn.Subnet{{
			IpAddressPrefix: network.Subnet, Routes: []hcn.Route{{NextHop: gateway.String(), DestinationPrefix: "0.0.0.0/0"}},
		}}}},
		SchemaVersion: hcn.V2SchemaVersion(),
	}).Create()
	if err != nil {
		return fmt.Errorf("create HNS network %s: %w", network.Name, err)
	}
	return nil
}
