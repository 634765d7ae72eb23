// Package cri calls a container runtime through the container runtime interface to query the status and the pods,
// and to end a pod. The caller opens the connection, a named pipe on Windows. Therefore the package runs on every
// system, and test/containerd tests it with the real containerd.
package cri

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// runtimeService is the gRPC service of the container runtime interface.
const runtimeService = "http://container-runtime/runtime.v1.RuntimeService/"

// maxResponseSize is the maximum size of a response of a container runtime in bytes, the same limit as in the
// kubelet. A status with its conditions has a few hundred bytes. A list of pods contains all annotations.
const maxResponseSize = 16 << 20

// newConnectionClient returns an HTTP/2 client that uses only the given connection. gRPC is HTTP/2 with a length before
// each message. The standard library suffices for a few small calls. Without the gRPC library, the agent, which is
// copied to every host, is 6 MB smaller. Source: "gRPC over HTTP2", doc/PROTOCOL-HTTP2.md of grpc/grpc.
func newConnectionClient(ctx context.Context, connection net.Conn) (client *http.Client, end func(), err error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols:   &protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil },
	}
	// A client with the transport's pool may dial again for the second call, before the connection is back in the
	// pool.
	only, err := transport.NewClientConn(ctx, "http", "container-runtime:80")
	if err != nil {
		return nil, nil, err
	}
	client = &http.Client{
		Transport:     only,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client, func() { _ = only.Close() }, nil // the owner also closes the connection
}

// withClient runs calls with a client for the connection, and closes the connection after the calls or when ctx ends.
func withClient(ctx context.Context, connection net.Conn, calls func(*http.Client) error) error {
	defer connection.Close()
	// The client starts the handshake immediately, and the end of ctx does not interrupt it.
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	client, end, err := newConnectionClient(ctx, connection)
	if err != nil {
		return err
	}
	defer end()
	return calls(client)
}

// callMethod calls a method without arguments and returns the message of the response.
func callMethod(ctx context.Context, client *http.Client, method string) ([]byte, error) {
	return callWith(ctx, client, method, nil)
}

// callWith calls a method with a message and returns the message of the response.
func callWith(ctx context.Context, client *http.Client, method string, arguments []byte) ([]byte, error) {
	framed := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(arguments))) //nolint:gosec // G115: a request has a few bytes
	content := bytes.NewReader(append(framed, arguments...))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, runtimeService+method, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := client.Do(request)
	if err != nil {
		var request *url.Error
		if errors.As(err, &request) {
			err = request.Err // the address in the error is artificial
		}
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseSize))
	if err != nil {
		return nil, err
	}
	return extractMessage(response, body)
}

// extractMessage extracts the message from a complete response.
func extractMessage(response *http.Response, body []byte) ([]byte, error) {
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the runtime returned HTTP status %s instead of a gRPC response", response.Status)
	}
	trailer := response.Trailer
	if trailer.Get("Grpc-Status") == "" {
		trailer = response.Header // a response without a message
	}
	if code := trailer.Get("Grpc-Status"); code != "0" {
		return nil, fmt.Errorf("the runtime returned gRPC status %q: %s", code, trailer.Get("Grpc-Message"))
	}
	if len(body) < 5 || body[0] != 0 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-5 {
		return nil, errors.New("the gRPC response is incomplete, or compressed although compression was not requested")
	}
	return body[5:], nil
}
