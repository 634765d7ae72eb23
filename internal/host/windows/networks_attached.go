package windows

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// codeHNSAlreadyAttached is HCN_E_ENDPOINT_ALREADY_ATTACHED, returned by HNS for an endpoint that is already
// attached. Sources: projectcalico/calico issues 4280 and 5192, flannel-io/flannel issue 1391.
const codeHNSAlreadyAttached = 0x803B0014

// isAttachedMessage reports whether the text of an error contains the code or its Windows message, in English or
// in the language of Windows.
func isAttachedMessage(text, localized string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{
		fmt.Sprintf("0x%08x", codeHNSAlreadyAttached), "this endpoint is already attached", strings.TrimRight(localized, ". \r\n"),
	}, func(mark string) bool { return mark != "" && strings.Contains(text, strings.ToLower(mark)) })
}

// hasAdapter reports whether an adapter of the machine has the hardware address ("00-15-5D-DB-CC-7A") or the IP address
// of an endpoint.
func hasAdapter(adapters []adapter, mac string, ip net.IP) bool {
	hardware, _ := net.ParseMAC(mac) // empty: HNS has not chosen an address
	return slices.ContainsFunc(adapters, func(a adapter) bool {
		if len(hardware) > 0 && slices.Equal(a.mac, hardware) {
			return true
		}
		return slices.ContainsFunc(a.addresses, func(own netip.Addr) bool { return ip != nil && ip.Equal(own.AsSlice()) })
	})
}
