package cluster

import (
	"context"
	"net/url"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// readInfrastructure reads the platform, and the addresses of the API server for nodes.
func readInfrastructure(ctx context.Context, reader client.Reader, facts *nodespec.Cluster) error {
	const id = "Infrastructure cluster"
	infrastructure := &configv1.Infrastructure{}
	if err := get(ctx, reader, "cluster", infrastructure, id,
		"The installer creates it; without it no node can be configured."); err != nil {
		return err
	}
	status := infrastructure.Status
	if status.PlatformStatus == nil || status.PlatformStatus.Type == "" {
		return &Error{Object: id, Field: "status.platformStatus.type",
			Message: "it is empty. The installer sets it to the platform of the cluster."}
	}
	if problem := internalURLProblem(status.APIServerInternalURL); problem != "" {
		return &Error{Object: id, Field: "status.apiServerInternalURI",
			Message: problem + " It must be https://<host>:<port>, the address at which nodes reach the API server."}
	}
	facts.Platform = string(status.PlatformStatus.Type)
	facts.APIServerInternalURL = status.APIServerInternalURL
	facts.APIServerURL = status.APIServerURL
	facts.VirtualIPs = virtualIPs(status.PlatformStatus)
	return nil
}

// virtualIPs returns the addresses for the API server and for ingress on the platforms without load balancers.
func virtualIPs(platform *configv1.PlatformStatus) []string {
	switch {
	case platform.BareMetal != nil:
		return slices.Concat(platform.BareMetal.APIServerInternalIPs, platform.BareMetal.IngressIPs)
	case platform.VSphere != nil:
		return slices.Concat(platform.VSphere.APIServerInternalIPs, platform.VSphere.IngressIPs)
	case platform.Nutanix != nil:
		return slices.Concat(platform.Nutanix.APIServerInternalIPs, platform.Nutanix.IngressIPs)
	case platform.OpenStack != nil:
		return slices.Concat(platform.OpenStack.APIServerInternalIPs, platform.OpenStack.IngressIPs)
	}
	return nil
}

func internalURLProblem(text string) string {
	if text == "" {
		return "it is empty."
	}
	// The value is not repeated because a URL may contain credentials.
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "it is not such an address."
	}
	return ""
}
