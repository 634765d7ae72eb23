package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// processIdentity identifies this process among all processes, including previous processes on the same host.
func processIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // only for administrators; the UUID is the identity
	}
	return host + "_" + string(uuid.NewUUID())
}

// newVersionFunc returns a function that requests the version of the API server.
func newVersionFunc(api rest.Interface) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		info := &version.Info{}
		body, err := api.Get().AbsPath("/version").Do(ctx).Raw()
		if err == nil {
			err = json.Unmarshal(body, info)
		}
		if err != nil {
			return "", fmt.Errorf("read the API server's version: %w", err)
		}
		return info.GitVersion, nil
	}
}
