package cri

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Field numbers in the container runtime interface.
// Source: k8s.io/cri-api, pkg/apis/runtime/v1/api.proto; the tests verify the numbers.
const (
	listItems         = 1 // ListPodSandboxResponse.items
	sandboxID         = 1 // PodSandbox.id
	sandboxMetadata   = 2 // PodSandbox.metadata
	metadataName      = 1 // PodSandboxMetadata.name
	metadataNamespace = 3 // PodSandboxMetadata.namespace
	requestSandboxID  = 1 // StopPodSandboxRequest.pod_sandbox_id, also of RemovePodSandboxRequest
)

// ListSandboxes lists the pods of a container runtime over a connection and closes the connection.
func ListSandboxes(ctx context.Context, connection net.Conn) (found []host.Sandbox, err error) {
	err = withClient(ctx, connection, func(client *http.Client) error {
		answer, err := callMethod(ctx, client, "ListPodSandbox")
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		for _, item := range parseFields(answer) {
			if item.number == listItems {
				found = append(found, readSandbox(item.bytes))
			}
		}
		return nil
	})
	return found, err
}

func readSandbox(message []byte) (found host.Sandbox) {
	for _, f := range parseFields(message) {
		switch f.number {
		case sandboxID:
			found.ID = string(f.bytes)
		case sandboxMetadata:
			for _, m := range parseFields(f.bytes) {
				switch m.number {
				case metadataName:
					found.Name = string(m.bytes)
				case metadataNamespace:
					found.Namespace = string(m.bytes)
				}
			}
		}
	}
	return found
}

// EndSandbox stops and removes a sandbox over a connection and closes the connection. The runtime also accepts both
// requests for a missing sandbox. The stop ends the containers immediately, without the grace period of the pod.
// Evicted pods have already received their grace period from the drain. The remaining pods are DaemonSet pods, which
// must tolerate the loss of a node.
func EndSandbox(ctx context.Context, connection net.Conn, id string) error {
	request := protowire.AppendString(protowire.AppendTag(nil, requestSandboxID, protowire.BytesType), id)
	return withClient(ctx, connection, func(client *http.Client) error {
		if _, err := callWith(ctx, client, "StopPodSandbox", request); err != nil {
			return fmt.Errorf("stop the pod: %w", err)
		}
		if _, err := callWith(ctx, client, "RemovePodSandbox", request); err != nil {
			return fmt.Errorf("remove the pod: %w", err)
		}
		return nil
	})
}
