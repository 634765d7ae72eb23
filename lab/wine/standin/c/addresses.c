/* See addresses.h. */
#include "addresses.h"

#include <stdio.h>
#include <string.h>

#include "codes.h"

struct subnet {
    unsigned long base;
    unsigned prefix;
    const char *gateway; /* "" if no route has a gateway */
};

/* parse_address parses a dotted IPv4 address. */
static int parse_address(const char *text, unsigned long *address) {
    unsigned a, b, c, d;
    char rest;
    if (sscanf(text, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &rest) != 4 || a > 255 || b > 255 || c > 255 || d > 255) return 0;
    *address = (unsigned long)a << 24 | b << 16 | c << 8 | d;
    return 1;
}

static void format_address(unsigned long address, char text[16]) {
    snprintf(text, 16, "%lu.%lu.%lu.%lu", address >> 24 & 255, address >> 16 & 255, address >> 8 & 255, address & 255);
}

static unsigned long size_of(const struct subnet *s) { return s->prefix == 0 ? 0xFFFFFFFF : (1UL << (32 - s->prefix)); }

static int contains(const struct subnet *s, unsigned long address) { return address - s->base < size_of(s); }

static int parse_subnet(const struct json *value, struct subnet *s) {
    char address[20] = {0}, rest;
    const char *text = json_text(value, "IpAddressPrefix");
    if (sscanf(text, "%19[0-9.]/%2u%c", address, &s->prefix, &rest) != 2 || s->prefix > 32 || !parse_address(address, &s->base)) return 0;
    s->base &= s->prefix == 0 ? 0 : 0xFFFFFFFFUL << (32 - s->prefix);
    const struct json *routes = json_get(value, "Routes");
    s->gateway = json_text(routes != NULL ? routes->first : NULL, "NextHop");
    return 1;
}

/* next_subnet iterates over the subnets of a network; *ipam is the position of the iteration. */
static const struct json *next_subnet(const struct json **ipam, const struct json *subnet) {
    if (subnet != NULL && subnet->next != NULL) return subnet->next;
    while (*ipam != NULL) {
        const struct json *subnets = json_get(*ipam, "Subnets");
        *ipam = (*ipam)->next;
        if (subnets != NULL && subnets->first != NULL) return subnets->first;
    }
    return NULL;
}

static const struct json *first_ipam(const struct json *network) {
    const struct json *ipams = json_get(network, "Ipams");
    return ipams != NULL ? ipams->first : NULL;
}

HRESULT check_network(const struct json *network) {
    const struct json *ipam = first_ipam(network), *at = NULL;
    struct subnet s;
    while ((at = next_subnet(&ipam, at)) != NULL) {
        if (!parse_subnet(at, &s)) return HCN_E_INVALID_IP;
    }
    return S_OK;
}

static int taken(const struct json *endpoints, const char *network, unsigned long address) {
    for (const struct json *e = endpoints->first; e != NULL; e = e->next) {
        if (_stricmp(json_text(e, "HostComputeNetwork"), network) != 0) continue;
        const struct json *list = json_get(e, "IpConfigurations");
        for (const struct json *c = list != NULL ? list->first : NULL; c != NULL; c = c->next) {
            unsigned long other;
            if (parse_address(json_text(c, "IpAddress"), &other) && other == address) return 1;
        }
    }
    return 0;
}

/* usable excludes the address of the subnet, the gateway and the broadcast address. */
static int usable(const struct subnet *s, unsigned long address) {
    unsigned long gateway = s->base + 1;
    parse_address(s->gateway, &gateway);
    return contains(s, address) && address != s->base && address != s->base + 1 && address != gateway && address != s->base + size_of(s) - 1;
}

static void describe(struct json *endpoint, const struct subnet *s, unsigned long address) {
    char text[32];
    struct json *configuration = json_new(JSON_OBJECT), *list = json_new(JSON_ARRAY);
    format_address(address, text);
    json_set(configuration, "IpAddress", json_string(text));
    json_set(configuration, "PrefixLength", json_number(s->prefix));
    json_append(list, configuration);
    json_set(endpoint, "IpConfigurations", list);
    if (*json_text(endpoint, "MacAddress") == 0) {
        snprintf(text, sizeof text, "00-15-5D-%02lX-%02lX-%02lX", address >> 16 & 255, address >> 8 & 255, address & 255);
        json_set(endpoint, "MacAddress", json_string(text));
    }
    if (json_get(endpoint, "Routes") == NULL && *s->gateway != 0) {
        struct json *route = json_new(JSON_OBJECT), *routes = json_new(JSON_ARRAY);
        json_set(route, "NextHop", json_string(s->gateway));
        json_set(route, "DestinationPrefix", json_string("0.0.0.0/0"));
        json_append(routes, route);
        json_set(endpoint, "Routes", routes);
    }
}

/* assign_wanted validates and assigns a requested address. */
static HRESULT assign_wanted(const struct json *network, const struct json *endpoints, struct json *endpoint, const char *wanted) {
    const struct json *ipam = first_ipam(network), *at = NULL;
    struct subnet s;
    unsigned long address;
    if (!parse_address(wanted, &address)) return HCN_E_INVALID_IP;
    while ((at = next_subnet(&ipam, at)) != NULL) {
        if (!parse_subnet(at, &s) || !contains(&s, address)) continue;
        if (!usable(&s, address) || taken(endpoints, json_text(network, "ID"), address)) return HCN_E_ADDR_INVALID_OR_RESERVED;
        describe(endpoint, &s, address);
        return S_OK;
    }
    return HCN_E_INVALID_IP;
}

HRESULT assign_address(const struct json *network, const struct json *endpoints, struct json *endpoint) {
    const struct json *configurations = json_get(endpoint, "IpConfigurations");
    const char *wanted = json_text(configurations != NULL ? configurations->first : NULL, "IpAddress");
    if (*wanted != 0) return assign_wanted(network, endpoints, endpoint, wanted);
    const struct json *ipam = first_ipam(network), *at = NULL;
    struct subnet s;
    while ((at = next_subnet(&ipam, at)) != NULL) {
        if (!parse_subnet(at, &s)) continue;
        for (unsigned long address = s.base + 2; contains(&s, address); address++) {
            if (!usable(&s, address) || taken(endpoints, json_text(network, "ID"), address)) continue;
            describe(endpoint, &s, address);
            return S_OK;
        }
    }
    return HCN_E_ADDR_INVALID_OR_RESERVED;
}
