package question

import (
	"fmt"
	"slices"
	"strings"
)

// Networking is the evidence that several questions share.
type Networking struct {
	Build    int       `json:"build"`
	Adapters []Adapter `json:"adapters"`
	Networks []Network `json:"networks"`
	// Deviceless is the registry value DeviceLessNicDisabled.
	Deviceless *uint32 `json:"deviceLessNicDisabled,omitempty"`
}

// Adapter is a network adapter with IPv4. The name is omitted, because administrators name adapters.
type Adapter struct {
	Type      uint32 `json:"ifType"`
	VIP       bool   `json:"vipEndpoint"` // of kube-proxy's endpoint
	Virtual   bool   `json:"virtual"`     // of HNS or Hyper-V, or the loopback
	Connected bool   `json:"connected"`
	Default   bool   `json:"defaultRoute"` // the default route with the lowest metric
	DHCP      bool   `json:"dhcp"`
	Registers bool   `json:"registersInDNS"`
	MTU       uint32 `json:"mtu"`
	// Registration is the registry value RegistrationEnabled.
	Registration *uint32 `json:"registrationEnabled,omitempty"`
}

// Network is a network of HNS.
type Network struct {
	Type     string   `json:"type"`
	Policies []string `json:"policies"`
	// Management describes whether the ManagementIP is an address of the adapter with the default route. It is
	// empty for a network without ManagementIP.
	Management string `json:"management,omitempty"`
}

// Values of Network.Management.
const (
	ManagementDefault = "default route"
	ManagementOther   = "another adapter"
)

// VIPAdapter is the name of the adapter of kube-proxy's endpoint.
const VIPAdapter = "vEthernet (VIPEndpoint)"

func (n Networking) overlayNetworks() (list []Network) {
	for _, network := range n.Networks {
		if strings.EqualFold(network.Type, "Overlay") {
			list = append(list, network)
		}
	}
	return list
}

func (n Networking) defaultAdapter() (Adapter, bool) {
	i := slices.IndexFunc(n.Adapters, func(a Adapter) bool { return a.Default })
	if i < 0 {
		return Adapter{}, false
	}
	return n.Adapters[i], true
}

const noOverlay = "there is no overlay network: ask on a node"

func judgeChoice(e, _ *Networking) (Verdict, string) {
	physical := 0
	for _, a := range e.Adapters {
		if a.Connected && !a.Virtual {
			physical++
		}
	}
	for _, network := range e.overlayNetworks() {
		switch {
		case network.Management == "":
			return contradictedVerdict("HNS reports no ManagementIP for an overlay network")
		case network.Management == ManagementOther && physical < 2:
			return contradictedVerdict("the ManagementIP of the only adapter's overlay network is not the node's address")
		case network.Management == ManagementOther:
			return holdsVerdict("HNS took another adapter than the one with the default route, and reports it")
		}
	}
	if len(e.overlayNetworks()) == 0 {
		return unknownVerdict(fmt.Sprintf("%s (%d adapters beside virtual ones are connected)", noOverlay, physical))
	}
	return holdsVerdict("the overlay networks use the adapter with the default route, and HNS reports it")
}

func judgeStaticAddress(e, before *Networking) (Verdict, string) {
	if before == nil {
		return unknownVerdict("it takes an earlier answer from before the machine was a node (-before)")
	}
	was, had := before.defaultAdapter()
	now, has := e.defaultAdapter()
	value := "not set"
	if e.Deviceless != nil {
		value = fmt.Sprint(*e.Deviceless)
	}
	switch {
	case !had || was.DHCP:
		return unknownVerdict("the machine had no static address")
	case len(e.overlayNetworks()) == 0:
		return unknownVerdict(noOverlay)
	case !has || now.DHCP:
		return contradictedVerdict("the static address is gone, DeviceLessNicDisabled is " + value)
	}
	return holdsVerdict("the static address has stayed, DeviceLessNicDisabled is " + value)
}

func judgeHostRoute(e, _ *Networking) (Verdict, string) {
	networks := e.overlayNetworks()
	if len(networks) == 0 {
		return unknownVerdict(noOverlay)
	}
	for _, network := range networks {
		if slices.Contains(network.Policies, "HostRoute") {
			return holdsVerdict("HostRoute is listed")
		}
	}
	for _, network := range networks {
		if len(network.Policies) > 0 {
			return contradictedVerdict("HNS lists " + strings.Join(network.Policies, ", ") + " and no HostRoute; or hybrid-overlay-node has not added it: ask again after a restart of the service")
		}
	}
	return unknownVerdict("HNS lists no policies of the overlay networks")
}

func judgeRegistration(e, _ *Networking) (Verdict, string) {
	i := slices.IndexFunc(e.Adapters, func(a Adapter) bool { return a.VIP })
	if i < 0 {
		return unknownVerdict("there is no adapter " + VIPAdapter + ": ask on a node")
	}
	switch a := e.Adapters[i]; {
	case a.Registration == nil || *a.Registration != 0:
		return unknownVerdict(fmt.Sprintf("RegistrationEnabled is not 0; the adapter registers: %t", a.Registers))
	case a.Registers:
		return contradictedVerdict("the adapter registers its addresses in DNS although RegistrationEnabled is 0")
	}
	return holdsVerdict("the adapter does not register its addresses in DNS")
}

func judgePacketSize(e, before *Networking) (Verdict, string) {
	now, _ := e.defaultAdapter()
	if before == nil || len(before.overlayNetworks()) > 0 || len(e.overlayNetworks()) == 0 {
		return unknownVerdict(fmt.Sprintf("it takes an answer from before the machine was a node, and one from a node; now it is %d", now.MTU))
	}
	was, _ := before.defaultAdapter()
	switch {
	case was.MTU != now.MTU:
		return contradictedVerdict(fmt.Sprintf("it was %d before and is %d with the pods' network", was.MTU, now.MTU))
	case now.MTU == 1500:
		return unknownVerdict("it is 1500 before and with the pods' network, as on any new adapter: ask where it is another one")
	}
	return holdsVerdict(fmt.Sprintf("it is %d before and with the pods' network", now.MTU))
}

// Attachment is the evidence of N2.
type Attachment struct {
	// Tries contains the errors of the first attempts, at intervals of half a second. The last error is empty after
	// a success.
	Tries []string `json:"tries"`
	Again string   `json:"again"` // the error of one more attempt
	State int      `json:"state"`
	// Adapter reports whether the machine has an adapter with the endpoint's hardware address.
	Adapter bool `json:"adapter"`
	// Node is the state of kube-proxy's endpoint, on a node.
	Node *int `json:"vipEndpointState,omitempty"`
}

// AlreadyAttached is the HNS error code for an endpoint that is already attached.
const AlreadyAttached = "0x803b0014"

func judgeAttachment(e, _ *Attachment) (Verdict, string) {
	attempts := len(e.Tries)
	if attempts == 0 {
		return unknownVerdict("no endpoint could be made")
	}
	again := strings.ToLower(e.Again)
	refused := strings.Contains(again, AlreadyAttached) || strings.Contains(again, "already attached")
	switch last := e.Tries[attempts-1]; {
	case last != "":
		return contradictedVerdict(fmt.Sprintf("%d attempts failed, the last one: %s", attempts, last))
	case attempts > 10:
		return contradictedVerdict(fmt.Sprintf("it took %d attempts in as many half seconds: %s", attempts, strings.Join(slices.Compact(slices.Clone(e.Tries)), ", ")))
	case e.Again != "" && !refused:
		return contradictedVerdict("a second time fails with another error: " + e.Again)
	case e.State != 2 && e.State != 3 && !e.Adapter:
		return contradictedVerdict(fmt.Sprintf("the state of an attached endpoint is %d, and the machine has no adapter for it", e.State))
	}
	second := "accepted"
	if refused {
		second = "refused as already attached"
	}
	return holdsVerdict(fmt.Sprintf("attached at attempt %d; a second time is %s; state %d, adapter %t", attempts, second, e.State, e.Adapter))
}

// Listing is the evidence of N13.
type Listing struct {
	Endpoints    int   `json:"endpoints"`
	Milliseconds int64 `json:"milliseconds"`
}

func judgeListing(e, _ *Listing) (Verdict, string) {
	answer := fmt.Sprintf("%d endpoints in %d ms", e.Endpoints, e.Milliseconds)
	switch {
	case e.Milliseconds > 5000:
		return contradictedVerdict(answer)
	case e.Endpoints < 50:
		return unknownVerdict(answer + ": ask on a node with 50 pods at least")
	}
	return holdsVerdict(answer)
}
