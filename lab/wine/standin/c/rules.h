/*
 * The rules of Windows Defender Firewall in the registry key of Windows: the values of
 * HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules. The name of a value is
 * the identifier of a rule, and its text is "v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|Name=...|".
 */
#ifndef LAB_RULES_H
#define LAB_RULES_H

#include <windows.h>

#define RULES_KEY L"SYSTEM\\CurrentControlSet\\Services\\SharedAccess\\Parameters\\FirewallPolicy\\FirewallRules"

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_ANY = 256, PROFILES_ALL = 0x7FFFFFFF, DIRECTION_IN = 1, DIRECTION_OUT = 2 };

/* The properties of a rule: texts, and numbers or Boolean values. */
enum text { NAME, DESCRIPTION, APPLICATION, SERVICE, GROUPING, LOCAL_PORTS, REMOTE_PORTS, LOCAL_ADDRESSES, REMOTE_ADDRESSES, ICMP, INTERFACE_TYPES, TEXTS };
enum number { PROTOCOL, DIRECTION, ACTION, PROFILES, ENABLED, EDGE_TRAVERSAL, NUMBERS };

enum { TEXT_LENGTH = 1024, RULE_LENGTH = 8192 };

struct rule {
    WCHAR id[64]; /* empty: the rule is not in a policy yet */
    WCHAR text[TEXTS][TEXT_LENGTH];
    LONG number[NUMBERS];
};

/* rule_default sets the values of a new HNetCfg.FwRule. */
void rule_default(struct rule *rule);

/*
 * rule_at reads the rule at an index; ERROR_NO_MORE_ITEMS after the last rule. An unreadable value yields a rule
 * without a name.
 */
LONG rule_at(DWORD index, struct rule *rule);

/* rule_named reads a rule by its name, ignoring case; ERROR_FILE_NOT_FOUND. */
LONG rule_named(const WCHAR *name, struct rule *rule);

/*
 * rule_removed reads the rule that Remove deletes for a name. If several rules have the name, Windows does not define
 * which rule is deleted. The lab prefers an outbound rule, so that a caller that means an inbound rule detects the
 * difference.
 */
LONG rule_removed(const WCHAR *name, struct rule *rule);

/* rule_save creates or replaces the rule with this identifier. */
LONG rule_save(const struct rule *rule);
LONG rule_delete(const struct rule *rule);

#endif
