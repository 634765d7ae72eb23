package cri

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Numbers of fields in the container runtime interface.
// Source: k8s.io/cri-api, pkg/apis/runtime/v1/api.proto; the test compares them with it.
const (
	listItems         = 1 // ListPodSandboxResponse.items
	sandboxID         = 1 // PodSandbox.id
	sandboxMetadata   = 2 // PodSandbox.metadata
	metadataName      = 1 // PodSandboxMetadata.name
	metadataNamespace = 3 // PodSandboxMetadata.namespace
	requestSandboxID  = 1 // StopPodSandboxRequest.pod_sandbox_id, and RemovePodSandboxRequest's
)

// Sandboxes asks a container runtime over a connection, which it closes.
func Sandboxes(ctx context.Context, connection net.Conn) (found []host.Sandbox, err error) {
	err = talk(ctx, connection, func(client *http.Client) error {
		answer, err := call(ctx, client, "ListPodSandbox")
		if err != nil {
			return fmt.Errorf("list its pods: %w", err)
		}
		for _, item := range fields(answer) {
			if item.number == listItems {
				found = append(found, readSandbox(item.bytes))
			}
		}
		return nil
	})
	return found, err
}

func readSandbox(message []byte) (found host.Sandbox) {
	for _, f := range fields(message) {
		switch f.number {
		case sandboxID:
			found.ID = string(f.bytes)
		case sandboxMetadata:
			for _, m := range fields(f.bytes) {
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

// EndSandbox stops and removes a sandbox over a connection, which it closes. The runtime takes both requests also for a
// sandbox that is not there. Stopping ends its containers at once, without the grace period of the pod: the drain gave
// one to the pods that it evicted, and leaves those that every node has, which must expect that a node goes off.
func EndSandbox(ctx context.Context, connection net.Conn, id string) error {
	request := protowire.AppendString(protowire.AppendTag(nil, requestSandboxID, protowire.BytesType), id)
	return talk(ctx, connection, func(client *http.Client) error {
		if _, err := callWith(ctx, client, "StopPodSandbox", request); err != nil {
			return fmt.Errorf("stop the pod: %w", err)
		}
		if _, err := callWith(ctx, client, "RemovePodSandbox", request); err != nil {
			return fmt.Errorf("remove the pod: %w", err)
		}
		return nil
	})
}
