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

// processIdentity tells this process from any other, also from an earlier one on the same host.
func processIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // it is there for people; the rest is for the operator
	}
	return host + "_" + string(uuid.NewUUID())
}

// versionOf asks the API server for its version.
func versionOf(api rest.Interface) func(context.Context) (string, error) {
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
