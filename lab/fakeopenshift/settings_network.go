package fakeopenshift

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
)

// mergeProxy writes the effective proxy to the Proxy's status, as the cluster network operator does. The
// cluster's own networks and names are added to the destinations without proxy.
func (s *simulator) mergeProxy(ctx context.Context) error {
	var proxy configv1.Proxy
	var infrastructure configv1.Infrastructure
	var network configv1.Network
	if err := s.read(ctx, proxyResource, theCluster, &proxy); err != nil {
		return err
	}
	if err := s.read(ctx, infrastructureResource, theCluster, &infrastructure); err != nil {
		return err
	}
	if err := s.read(ctx, configNetworkResource, theCluster, &network); err != nil {
		return err
	}
	var desired configv1.ProxyStatus
	if proxy.Spec.HTTPProxy != "" || proxy.Spec.HTTPSProxy != "" {
		direct, err := notProxied(proxy.Spec.NoProxy, &infrastructure.Status, &network.Status)
		if err != nil {
			return err
		}
		desired = configv1.ProxyStatus{HTTPProxy: proxy.Spec.HTTPProxy, HTTPSProxy: proxy.Spec.HTTPSProxy, NoProxy: direct}
	}
	if proxy.Status == desired {
		return nil
	}
	// Empty fields are set to null to remove them.
	status := map[string]any{"httpProxy": orNull(desired.HTTPProxy), "httpsProxy": orNull(desired.HTTPSProxy),
		"noProxy": orNull(desired.NoProxy)}
	return s.patchObject(ctx, proxyResource, theCluster, map[string]any{"status": status}, "status")
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// notProxied merges the administrators' exceptions with the exceptions that every cluster needs. Source:
// pkg/util/proxyconfig/no_proxy.go of the cluster network operator.
func notProxied(noProxy string, infrastructure *configv1.InfrastructureStatus, network *configv1.NetworkStatus) (string,
	error) {
	internal, err := url.Parse(infrastructure.APIServerInternalURL)
	if err != nil {
		return "", fmt.Errorf("the Infrastructure's internal address of the API server: %w", err)
	}
	all := []string{"127.0.0.1", "localhost", ".svc", ".cluster.local", internal.Hostname(), "10.0.0.0/16"} // The last is the machine network.
	all = append(all, network.ServiceNetwork...)
	for _, entry := range network.ClusterNetwork {
		all = append(all, entry.CIDR)
	}
	if status := infrastructure.PlatformStatus; status != nil {
		switch status.Type {
		case configv1.AWSPlatformType:
			all = append(all, "169.254.169.254", ".ec2.internal")
		case configv1.GCPPlatformType:
			all = append(all, "169.254.169.254", "metadata", "metadata.google.internal", "metadata.google.internal.")
		case configv1.AzurePlatformType:
			all = append(all, "169.254.169.254")
		}
	}
	for _, entry := range strings.Split(noProxy, ",") {
		if entry != "" {
			all = append(all, entry)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ","), nil
}

// reportMTU writes the effective MTU of the pod network to the network's status.
func (s *simulator) reportMTU(ctx context.Context) error {
	var desired operatorv1.Network
	var network configv1.Network
	if err := s.read(ctx, operatorNetworkResource, theCluster, &desired); err != nil {
		return err
	}
	if err := s.read(ctx, configNetworkResource, theCluster, &network); err != nil {
		return err
	}
	ovn := desired.Spec.DefaultNetwork.OVNKubernetesConfig
	if ovn == nil || ovn.MTU == nil || int(*ovn.MTU) == network.Status.ClusterNetworkMTU {
		return nil
	}
	return s.patchObject(ctx, configNetworkResource, theCluster,
		map[string]any{"status": map[string]any{"clusterNetworkMTU": *ovn.MTU}})
}
