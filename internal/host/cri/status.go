package cri

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Status calls Version and Status of a container runtime over a connection, evaluates the condition RuntimeReady,
// and closes the connection.
func Status(ctx context.Context, connection net.Conn) (host.RuntimeStatus, error) {
	var version, status []byte
	err := withClient(ctx, connection, func(client *http.Client) (err error) {
		if version, err = callMethod(ctx, client, "Version"); err != nil {
			return fmt.Errorf("query the version: %w", err)
		}
		if status, err = callMethod(ctx, client, "Status"); err != nil {
			return fmt.Errorf("query the status: %w", err)
		}
		return nil
	})
	if err != nil {
		return host.RuntimeStatus{}, err
	}
	answer := host.RuntimeStatus{Ready: isRuntimeReady(status)}
	for _, f := range parseFields(version) {
		switch f.number {
		case versionRuntimeName:
			answer.Name = string(f.bytes)
		case versionRuntimeVersion:
			answer.Version = string(f.bytes)
		}
	}
	return answer, nil
}

// Field numbers in the container runtime interface.
// Source: k8s.io/cri-api, pkg/apis/runtime/v1/api.proto; the tests verify the numbers.
const (
	versionRuntimeName    = 2 // VersionResponse.runtime_name
	versionRuntimeVersion = 3 // VersionResponse.runtime_version
	responseStatus        = 1 // StatusResponse.status
	statusConditions      = 1 // RuntimeStatus.conditions
	conditionType         = 1 // RuntimeCondition.type
	conditionStatus       = 2 // RuntimeCondition.status
	runtimeReadyCondition = "RuntimeReady"
)

// isRuntimeReady reports whether the condition RuntimeReady of a StatusResponse is true.
func isRuntimeReady(response []byte) bool {
	for _, status := range parseFields(response) {
		if status.number != responseStatus {
			continue
		}
		for _, condition := range parseFields(status.bytes) {
			if condition.number != statusConditions {
				continue
			}
			name, ready := "", false
			for _, f := range parseFields(condition.bytes) {
				switch f.number {
				case conditionType:
					name = string(f.bytes)
				case conditionStatus:
					ready = f.varint != 0
				}
			}
			if name == runtimeReadyCondition {
				return ready
			}
		}
	}
	return false
}

// field is one field of a protobuf message: bytes or a number.
type field struct {
	number protowire.Number
	bytes  []byte
	varint uint64
}

// parseFields parses a message up to the first damaged field.
func parseFields(message []byte) []field {
	var found []field
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return found
		}
		message = message[n:]
		f := field{number: number}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return found
		}
		message, found = message[n:], append(found, f)
	}
	return found
}
