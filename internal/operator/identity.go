package operator

import (
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// processIdentity identifies this process among all processes, including previous processes on the same host.
func processIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // only for administrators; the UUID is the identity
	}
	return host + "_" + string(uuid.NewUUID())
}
