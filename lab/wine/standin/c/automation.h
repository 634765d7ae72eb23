/* The automation objects of wmco-lab-firewall.dll (firewall.c). */
#ifndef LAB_AUTOMATION_H
#define LAB_AUTOMATION_H

#define CINTERFACE
#define COBJMACROS
#include <objbase.h>
#include <oleauto.h>

#include "rules.h"

enum class { POLICY, RULES, RULE };

/* object_count counts the objects and locks that keep the DLL in its process. */
extern LONG object_count;

/* make_object makes one of the three; rule is what a RULE starts from, NULL for a new one. */
HRESULT make_object(enum class class, const struct rule *rule, IDispatch **out);

/* make_enumerator makes an IEnumVARIANT over the rules of the policy from that number on. */
HRESULT make_enumerator(DWORD next, IUnknown **out);

/* return_object puts an object into a result. */
HRESULT return_object(VARIANT *result, enum class class, const struct rule *rule);

#endif
