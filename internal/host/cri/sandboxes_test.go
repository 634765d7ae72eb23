package cri

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/windows-machine-config/wmco/internal/host"
)

// sandboxServer is a container runtime that records its requests.
type sandboxServer struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	items    []*runtimeapi.PodSandbox
	requests []string
	stop     func(context.Context) error
}

// ListPodSandbox implements the CRI.
func (s *sandboxServer) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: s.items}, nil
}

// StopPodSandbox implements the CRI.
func (s *sandboxServer) StopPodSandbox(ctx context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	s.requests = append(s.requests, "stop "+r.PodSandboxId)
	return &runtimeapi.StopPodSandboxResponse{}, s.stop(ctx)
}

// RemovePodSandbox implements the CRI.
func (s *sandboxServer) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	s.requests = append(s.requests, "remove "+r.PodSandboxId)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// The library and the types of Kubernetes verify the calls.
func TestSandboxes(t *testing.T) {
	t.Run("all pods are listed, in any state and with any number of annotations", func(t *testing.T) {
		long := map[string]string{"kubernetes.io/config": strings.Repeat("x", 2<<20)}
		got, err := ListSandboxes(t.Context(), serveRuntime(t, &sandboxServer{items: []*runtimeapi.PodSandbox{
			{Id: "01", Metadata: &runtimeapi.PodSandboxMetadata{Namespace: "a", Name: "b", Uid: "c"}, Annotations: long},
			{Id: "02", Metadata: &runtimeapi.PodSandboxMetadata{Namespace: "d", Name: "e"}, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY},
		}}))
		if want := []host.Sandbox{{ID: "01", Namespace: "a", Name: "b"}, {ID: "02", Namespace: "d", Name: "e"}}; !slices.Equal(got, want) || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("a pod is stopped, then removed", func(t *testing.T) {
		server := &sandboxServer{stop: func(context.Context) error { return nil }}
		err := EndSandbox(t.Context(), serveRuntime(t, server), "0123abcd")
		if want := []string{"stop 0123abcd", "remove 0123abcd"}; !slices.Equal(server.requests, want) || err != nil {
			t.Errorf("%q, %v", server.requests, err)
		}
	})
	t.Run("a pod that does not stop is not removed, and the runtime's reason is in the error", func(t *testing.T) {
		server := &sandboxServer{stop: func(context.Context) error { return errors.New("hcs does not answer") }}
		err := EndSandbox(t.Context(), serveRuntime(t, server), "01")
		if err == nil || !strings.Contains(err.Error(), "hcs does not answer") || len(server.requests) != 1 {
			t.Errorf("%q, %v", server.requests, err)
		}
	})
	t.Run("a runtime that hangs is given up with the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := &sandboxServer{stop: func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }}
		if err := EndSandbox(ctx, serveRuntime(t, server), "01"); err == nil {
			t.Error("no error")
		}
	})
}
