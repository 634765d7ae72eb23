package cni

import (
	"encoding/json"
	"testing"

	"github.com/Microsoft/hcsshim/hcn"
	"github.com/containernetworking/plugins/pkg/hns"
)

// The plugin leaves out a policy that it cannot read, and overlooks one whose fields are written otherwise: then it
// adds its own to ours.
func TestPolicies_PassedToWindows(t *testing.T) {
	for path, data := range configurations(t) {
		var config hns.NetConf
		if err := json.Unmarshal(data, &config); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if config.ApiVersion != 2 {
			t.Errorf("%s: the policies are for version %d of the service", path, config.ApiVersion)
		}
		before := len(config.Policies)
		policies := map[hcn.EndpointPolicyType]json.RawMessage{}
		for _, policy := range config.GetHostComputeEndpointPolicies() {
			policies[policy.Type] = policy.Settings
		}
		var nat hcn.OutboundNatPolicySetting
		var route hcn.SDNRoutePolicySetting
		var address hcn.ProviderAddressEndpointPolicySetting
		for kind, settings := range map[hcn.EndpointPolicyType]any{hcn.OutBoundNAT: &nat, hcn.SDNRoute: &route,
			hcn.NetworkProviderAddress: &address} {
			if err := json.Unmarshal(policies[kind], settings); err != nil {
				t.Fatalf("%s: policy %s: %v", path, kind, err)
			}
		}
		if len(nat.Exceptions) == 0 || route.DestinationPrefix != nat.Exceptions[0] || !route.NeedEncap ||
			address.ProviderAddress == "" {
			t.Errorf("%s: %+v, %+v, %+v", path, nat, route, address)
		}
		config.ApplyDefaultPAPolicy(address.ProviderAddress)
		if len(config.Policies) != before {
			t.Errorf("%s: the plugin does not find the address that is there", path)
		}
	}
}
