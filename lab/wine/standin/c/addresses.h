/* The IPv4 addresses that the lab's Host Networking Service gives to endpoints. */
#ifndef LAB_ADDRESSES_H
#define LAB_ADDRESSES_H

#include <windows.h>

#include "json.h"

/* check_network refuses a network whose subnets are none (HCN_E_INVALID_IP). */
HRESULT check_network(const struct json *network);

/*
 * assign_address gives an endpoint the lowest free address of its network's first subnet, or checks the one that it asks for; with
 * prefix length, MAC address and route to the gateway. The first address of a subnet is the gateway's.
 */
HRESULT assign_address(const struct json *network, const struct json *endpoints, struct json *endpoint);

#endif
