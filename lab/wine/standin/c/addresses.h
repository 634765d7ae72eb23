/* The IPv4 addresses that the lab's Host Networking Service assigns to endpoints. */
#ifndef LAB_ADDRESSES_H
#define LAB_ADDRESSES_H

#include <windows.h>

#include "json.h"

/* check_network rejects a network with an invalid subnet (HCN_E_INVALID_IP). */
HRESULT check_network(const struct json *network);

/*
 * assign_address assigns the lowest free address of the network's subnets to an endpoint, or validates a requested
 * address. The function also sets prefix length, MAC address and the route to the gateway. The first address of a
 * subnet is reserved for the gateway.
 */
HRESULT assign_address(const struct json *network, const struct json *endpoints, struct json *endpoint);

#endif
