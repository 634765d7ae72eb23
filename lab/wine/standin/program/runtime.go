//go:build windows

package main

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/lab/wine/standin/pipe"
)

// runtimeService implements only Version and Status of the container runtime interface.
type runtimeService struct {
	runtimev1.UnimplementedRuntimeServiceServer
	status func() host.RuntimeStatus
}

// ServeRuntime implements node.Network.
func (m *machine) ServeRuntime(endpoint string, status func() host.RuntimeStatus) error {
	name := strings.ReplaceAll(strings.TrimPrefix(endpoint, "npipe:"), "/", `\`)
	listener, err := pipe.Listen(name)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, runtimeService{status: status})
	m.addCloser(listener)
	go func() { _ = server.Serve(listener) }() // It ends when its listener is closed.
	return nil
}

// Version implements the runtime service.
func (s runtimeService) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	now := s.status()
	return &runtimev1.VersionResponse{Version: "0.1.0", RuntimeName: now.Name, RuntimeVersion: now.Version,
		RuntimeApiVersion: "v1"}, nil
}

// Status implements the runtime service.
func (s runtimeService) Status(context.Context, *runtimev1.StatusRequest) (*runtimev1.StatusResponse, error) {
	ready := s.status().Ready
	return &runtimev1.StatusResponse{Status: &runtimev1.RuntimeStatus{Conditions: []*runtimev1.RuntimeCondition{
		{Type: runtimev1.RuntimeReady, Status: ready}, {Type: runtimev1.NetworkReady, Status: ready},
	}}}, nil
}
