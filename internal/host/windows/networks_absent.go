package windows

// Codes of the Host Networking Service for a missing object. hcsshim recognizes only the first code.
const (
	codeElementNotFound     = 1168       // ERROR_NOT_FOUND, the Win32 code
	codeElementNotFoundHR   = 0x80070490 // the same as an HRESULT
	codeHNSNetworkNotFound  = 0x803B0001 // HCN_E_NETWORK_NOT_FOUND
	codeHNSEndpointNotFound = 0x803B0002 // HCN_E_ENDPOINT_NOT_FOUND
)

// absentCodes returns the codes of missing networks and endpoints. One list serves both kinds, because an endpoint
// disappears with its network.
func absentCodes() []uint32 {
	return []uint32{codeElementNotFound, codeElementNotFoundHR, codeHNSNetworkNotFound, codeHNSEndpointNotFound}
}
