/* The enumerator of the firewall's rules; see automation.h. */
#include "automation.h"

#include <stdlib.h>

#include "faults.h"

struct enumerator {
    IEnumVARIANT base; /* must be first */
    LONG references;
    DWORD next;
};

static HRESULT STDMETHODCALLTYPE enum_next(IEnumVARIANT *this, ULONG wanted, VARIANT *out, ULONG *got) {
    struct enumerator *e = (struct enumerator *)this;
    struct rule *rule = malloc(sizeof *rule);
    HRESULT code = rule != NULL ? enumeration_fault(L"firewall", e->next) : E_OUTOFMEMORY;
    ULONG n = 0;
    while (n < wanted && SUCCEEDED(code) && rule_at(e->next, rule) == ERROR_SUCCESS) {
        e->next++;
        if (rule->text[NAME][0] != 0 && SUCCEEDED(code = return_object(&out[n], RULE, rule))) n++;
    }
    free(rule);
    if (got != NULL) *got = n;
    return FAILED(code) ? code : n == wanted ? S_OK : S_FALSE;
}

static HRESULT STDMETHODCALLTYPE enum_skip(IEnumVARIANT *this, ULONG count) {
    ((struct enumerator *)this)->next += count;
    return S_OK;
}

static HRESULT STDMETHODCALLTYPE enum_reset(IEnumVARIANT *this) {
    ((struct enumerator *)this)->next = 0;
    return S_OK;
}

static HRESULT STDMETHODCALLTYPE enum_clone(IEnumVARIANT *this, IEnumVARIANT **out) {
    return make_enumerator(((struct enumerator *)this)->next, (IUnknown **)out);
}

static HRESULT STDMETHODCALLTYPE enum_query(IEnumVARIANT *this, REFIID id, void **out) {
    *out = IsEqualIID(id, &IID_IUnknown) || IsEqualIID(id, &IID_IEnumVARIANT) ? this : NULL;
    if (*out == NULL) return E_NOINTERFACE;
    IEnumVARIANT_AddRef(this);
    return S_OK;
}

static ULONG STDMETHODCALLTYPE enum_add_ref(IEnumVARIANT *this) { return (ULONG)InterlockedIncrement(&((struct enumerator *)this)->references); }

static ULONG STDMETHODCALLTYPE enum_release(IEnumVARIANT *this) {
    LONG left = InterlockedDecrement(&((struct enumerator *)this)->references);
    if (left == 0) {
        free(this);
        InterlockedDecrement(&object_count);
    }
    return (ULONG)left;
}

static IEnumVARIANTVtbl enum_table = {enum_query, enum_add_ref, enum_release, enum_next, enum_skip, enum_reset, enum_clone};

HRESULT make_enumerator(DWORD next, IUnknown **out) {
    struct enumerator *e = calloc(1, sizeof *e);
    *out = (IUnknown *)e;
    if (e == NULL) return E_OUTOFMEMORY;
    e->base.lpVtbl = &enum_table;
    e->references = 1;
    e->next = next;
    InterlockedIncrement(&object_count);
    return S_OK;
}
