/* The automation objects of wmco-lab-firewall.dll (firewall.c). */
#ifndef LAB_AUTOMATION_H
#define LAB_AUTOMATION_H

#define CINTERFACE
#define COBJMACROS
#include <objbase.h>
#include <oleauto.h>

#include "rules.h"

enum class { POLICY, RULES, RULE };

/* object_count is the number of objects and locks that keep the DLL loaded. */
extern LONG object_count;

/*
 * make_object creates an object of one of the three classes; rule is the initial value of a RULE, or NULL for a new
 * rule.
 */
HRESULT make_object(enum class class, const struct rule *rule, IDispatch **out);

/* make_enumerator creates an IEnumVARIANT over the rules of the policy, starting with the rule at index next. */
HRESULT make_enumerator(DWORD next, IUnknown **out);

/* return_object creates an object in a result. */
HRESULT return_object(VARIANT *result, enum class class, const struct rule *rule);

#endif
