/*
 * The rules of Windows Defender Firewall where Windows keeps them: the values of
 * HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules, whose names are the rules'
 * identifiers and whose texts are "v2.30|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=10250|Name=...|".
 */
#ifndef LAB_RULES_H
#define LAB_RULES_H

#include <windows.h>

#define RULES_KEY L"SYSTEM\\CurrentControlSet\\Services\\SharedAccess\\Parameters\\FirewallPolicy\\FirewallRules"

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_ANY = 256, PROFILES_ALL = 0x7FFFFFFF, DIRECTION_IN = 1, DIRECTION_OUT = 2 };

/* The properties of a rule that are text, and those that are numbers or yes and no. */
enum text { NAME, DESCRIPTION, APPLICATION, SERVICE, GROUPING, LOCAL_PORTS, REMOTE_PORTS, LOCAL_ADDRESSES, REMOTE_ADDRESSES, ICMP, INTERFACE_TYPES, TEXTS };
enum number { PROTOCOL, DIRECTION, ACTION, PROFILES, ENABLED, EDGE_TRAVERSAL, NUMBERS };

enum { TEXT_LENGTH = 1024, RULE_LENGTH = 8192 };

struct rule {
    WCHAR id[64]; /* empty: the rule is in no policy yet */
    WCHAR text[TEXTS][TEXT_LENGTH];
    LONG number[NUMBERS];
};

/* rule_default is a rule as a new HNetCfg.FwRule. */
void rule_default(struct rule *rule);

/* rule_at reads the rule of that number; ERROR_NO_MORE_ITEMS after the last. What cannot be read is a rule without a name. */
LONG rule_at(DWORD index, struct rule *rule);

/* rule_named reads a rule by its name, whatever its case; ERROR_FILE_NOT_FOUND. */
LONG rule_named(const WCHAR *name, struct rule *rule);

/*
 * rule_removed reads the rule that Remove of a name removes. Windows does not define which one of several rules of a name that is: here an
 * outbound rule before an inbound one, so that a caller who means the inbound one notices.
 */
LONG rule_removed(const WCHAR *name, struct rule *rule);

/* rule_save makes or replaces the rule of that identifier. */
LONG rule_save(const struct rule *rule);
LONG rule_delete(const struct rule *rule);

#endif
