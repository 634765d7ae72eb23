/*
 * wmco-lab-wmi.dll: the COM class WbemScripting.SWbemLocator of Windows Management Instrumentation, in process and
 * late-bound (IDispatch only), with the namespace ROOT\Microsoft\Windows\Defender. Wine's own wbemdisp.dll serves all
 * other namespaces.
 *
 * It simulates: MSFT_MpPreference with ExclusionProcess and ExclusionPath (arrays of texts, or NULL) and the methods
 * Add and Remove, in the registry keys of Defender; InstancesOf, which succeeds before the result is available, so that
 * IEnumVARIANT.Next returns a failure (a missing class, or a fault of faults.h).
 *
 * It does not simulate: the antivirus. No file is scanned, and the state of the service has no effect. There are no
 * other properties and classes, no queries, and no vtables of ISWbemLocator and the related interfaces.
 */
#include "defender.h"

#include <initguid.h>
#include <stdlib.h>
#include <wchar.h>

#include "faults.h"

DEFINE_GUID(CLSID_Locator, 0x76A64158, 0xCB41, 0x11D1, 0x8B, 0x02, 0x00, 0x60, 0x08, 0x06, 0xD9, 0xB6);

#define NAMESPACE L"ROOT\\Microsoft\\Windows\\Defender"
#define PREFERENCE_CLASS L"MSFT_MpPreference"

enum { INVALID_CLASS = (int)0x80041010, NOT_FOUND = (int)0x80041002, NAME_LENGTH = 64 };

static LONG object_count;

/* object is any of the objects, and the enumerator of an OBJECT_SET. */
struct object {
    union {
        IDispatch dispatch;
        IEnumVARIANT items;
    } base; /* must be first: a pointer to one is a pointer to the other */
    LONG references;
    enum class class;
    WCHAR name[NAME_LENGTH];    /* of the class of an OBJECT_SET and of a METHOD */
    DWORD given;                /* number of returned items of an enumerator */
    int spared;                 /* 1: the enumerator does not fail */
    VARIANT values[EXCLUSIONS]; /* of PARAMETERS */
};

enum member { CONNECT = 1, INSTANCES, GET, EXECUTE, COUNT, METHODS_OF, ITEM, PARAMETERS_OF, SPAWN, RETURN_VALUE, VALUES = 100 };

static const struct {
    enum class class;
    const WCHAR *name;
    DISPID id;
} members[] = {
    {LOCATOR, L"ConnectServer", CONNECT},
    {SERVICES, L"InstancesOf", INSTANCES},
    {SERVICES, L"Get", GET},
    {SERVICES, L"ExecMethod", EXECUTE},
    {OBJECT_SET, L"_NewEnum", DISPID_NEWENUM},
    {PREFERENCE, L"ExclusionProcess", VALUES + PROCESSES},
    {PREFERENCE, L"ExclusionPath", VALUES + PATHS},
    {CLASS, L"Methods_", METHODS_OF},
    {METHODS, L"Item", ITEM},
    {METHOD, L"InParameters", PARAMETERS_OF},
    {PARAMETER_CLASS, L"SpawnInstance_", SPAWN},
    {PARAMETERS, L"ExclusionProcess", VALUES + PROCESSES},
    {PARAMETERS, L"ExclusionPath", VALUES + PATHS},
    {RESULT, L"ReturnValue", RETURN_VALUE},
};

static IDispatchVtbl dispatch_table;
static IEnumVARIANTVtbl items_table;

static struct object *make(enum class class, const WCHAR *name) {
    struct object *o = calloc(1, sizeof *o);
    if (o == NULL) return NULL;
    o->base.dispatch.lpVtbl = &dispatch_table;
    o->references = 1;
    o->class = class;
    if (name != NULL) lstrcpynW(o->name, name, NAME_LENGTH);
    InterlockedIncrement(&object_count);
    return o;
}

static HRESULT return_object(VARIANT *result, enum class class, const WCHAR *name) {
    struct object *o = make(class, name);
    V_VT(result) = VT_DISPATCH;
    V_DISPATCH(result) = (IDispatch *)o;
    return o != NULL ? S_OK : E_OUTOFMEMORY;
}

/* argument returns a text argument, or "" for other types. COM passes arguments in reverse order. */
static const WCHAR *argument(const DISPPARAMS *p, UINT i) {
    if (i >= p->cArgs) return L"";
    const VARIANT *v = &p->rgvarg[p->cArgs - 1 - i];
    return V_VT(v) == VT_BSTR && V_BSTR(v) != NULL ? V_BSTR(v) : L"";
}

/* connect_wine calls ConnectServer of Wine's own locator. */
static HRESULT connect_wine(DISPPARAMS *p, VARIANT *result, EXCEPINFO *exception) {
    HMODULE library = LoadLibraryW(L"wbemdisp.dll");
    LPFNGETCLASSOBJECT get_class = library != NULL ? (LPFNGETCLASSOBJECT)(void *)GetProcAddress(library, "DllGetClassObject") : NULL;
    IClassFactory *factory = NULL;
    IDispatch *locator = NULL;
    DISPID id;
    WCHAR text[] = L"ConnectServer", *name = text;
    HRESULT code = get_class != NULL ? get_class(&CLSID_Locator, &IID_IClassFactory, (void **)&factory) : CLASS_E_CLASSNOTAVAILABLE;
    if (SUCCEEDED(code)) code = IClassFactory_CreateInstance(factory, NULL, &IID_IDispatch, (void **)&locator);
    if (SUCCEEDED(code)) code = IDispatch_GetIDsOfNames(locator, &IID_NULL, &name, 1, LOCALE_NEUTRAL, &id);
    if (SUCCEEDED(code)) code = IDispatch_Invoke(locator, id, &IID_NULL, LOCALE_NEUTRAL, DISPATCH_METHOD, p, result, exception, NULL);
    if (locator != NULL) IDispatch_Release(locator);
    if (factory != NULL) IClassFactory_Release(factory);
    return code;
}

/* execute calls Add or Remove of MSFT_MpPreference. */
static HRESULT execute(const DISPPARAMS *p, VARIANT *result) {
    int add = _wcsicmp(argument(p, 1), L"Add") == 0;
    const VARIANT *last = p->cArgs == 3 ? &p->rgvarg[0] : NULL;
    struct object *input = last != NULL && V_VT(last) == VT_DISPATCH ? (struct object *)V_DISPATCH(last) : NULL;
    if (_wcsicmp(argument(p, 0), PREFERENCE_CLASS) != 0) return INVALID_CLASS;
    if (input == NULL || input->base.dispatch.lpVtbl != &dispatch_table || input->class != PARAMETERS) return E_INVALIDARG;
    HRESULT code = S_OK;
    for (int i = 0; i < EXCLUSIONS && SUCCEEDED(code) && fault_number(L"wmi", L"ReturnCode") == 0; i++) {
        code = exclusions_change(i, &input->values[i], add);
    }
    return SUCCEEDED(code) ? return_object(result, RESULT, NULL) : code;
}

static HRESULT call(struct object *o, DISPID id, DISPPARAMS *p, VARIANT *result, EXCEPINFO *exception) {
    int is_class = _wcsicmp(argument(p, 0), PREFERENCE_CLASS) == 0;
    switch (id) {
    case CONNECT:
        return _wcsicmp(argument(p, 1), NAMESPACE) == 0 ? return_object(result, SERVICES, NULL) : connect_wine(p, result, exception);
    case INSTANCES:
        return return_object(result, OBJECT_SET, argument(p, 0));
    case GET:
        return is_class ? return_object(result, CLASS, NULL) : INVALID_CLASS;
    case EXECUTE:
        return execute(p, result);
    case METHODS_OF:
        return return_object(result, METHODS, NULL);
    case ITEM:
        return _wcsicmp(argument(p, 0), L"Add") == 0 || _wcsicmp(argument(p, 0), L"Remove") == 0 ? return_object(result, METHOD, argument(p, 0)) : NOT_FOUND;
    case PARAMETERS_OF:
        return return_object(result, PARAMETER_CLASS, NULL);
    case SPAWN:
        return return_object(result, PARAMETERS, NULL);
    case RETURN_VALUE:
        V_VT(result) = VT_I4;
        V_I4(result) = (LONG)fault_number(L"wmi", L"ReturnCode");
        return S_OK;
    case DISPID_NEWENUM: {
        struct object *items = make(OBJECT_SET, o->name);
        if (items == NULL) return E_OUTOFMEMORY;
        items->base.items.lpVtbl = &items_table;
        items->spared = fault_countdown(L"wmi", L"Skip");
        V_VT(result) = VT_UNKNOWN;
        V_UNKNOWN(result) = (IUnknown *)items;
        return S_OK;
    }
    default:
        return o->class == PREFERENCE ? exclusions_read(id - VALUES, result) : VariantCopy(result, &o->values[id - VALUES]);
    }
}

static HRESULT STDMETHODCALLTYPE dispatch_invoke(IDispatch *this, DISPID id, REFIID reserved, LCID locale, WORD flags, DISPPARAMS *p,
                                                 VARIANT *result, EXCEPINFO *exception, UINT *bad) {
    struct object *o = (struct object *)this;
    VARIANT ignored;
    (void)reserved, (void)locale, (void)bad;
    VariantInit(&ignored);
    if (result == NULL) result = &ignored;
    VariantInit(result);
    if (flags & DISPATCH_PROPERTYPUT) return o->class == PARAMETERS && p->cArgs == 1 ? VariantCopy(&o->values[id - VALUES], &p->rgvarg[0]) : DISP_E_MEMBERNOTFOUND;
    HRESULT code = call(o, id, p, result, exception);
    if (FAILED(code)) V_VT(result) = VT_EMPTY;
    VariantClear(&ignored);
    if (SUCCEEDED(code) || HRESULT_FACILITY(code) == FACILITY_DISPATCH) return code;
    if (exception == NULL) return DISP_E_EXCEPTION;
    ZeroMemory(exception, sizeof *exception);
    exception->scode = code;
    return DISP_E_EXCEPTION;
}

static HRESULT STDMETHODCALLTYPE dispatch_names(IDispatch *this, REFIID reserved, LPOLESTR *names, UINT count, LCID locale, DISPID *ids) {
    const struct object *o = (const struct object *)this;
    (void)reserved, (void)locale;
    for (UINT n = 0; n < count; n++) ids[n] = DISPID_UNKNOWN;
    for (size_t i = 0; i < ARRAYSIZE(members) && count > 0; i++) {
        if (members[i].class == o->class && _wcsicmp(members[i].name, names[0]) == 0) ids[0] = members[i].id;
    }
    return count == 1 && ids[0] != DISPID_UNKNOWN ? S_OK : DISP_E_UNKNOWNNAME;
}

static HRESULT STDMETHODCALLTYPE dispatch_type_count(IDispatch *this, UINT *count) {
    (void)this;
    *count = 0;
    return S_OK;
}

static HRESULT STDMETHODCALLTYPE dispatch_type(IDispatch *this, UINT index, LCID locale, ITypeInfo **out) {
    (void)this, (void)index, (void)locale;
    *out = NULL;
    return DISP_E_BADINDEX;
}

static HRESULT STDMETHODCALLTYPE object_query(IUnknown *this, REFIID id, void **out) {
    struct object *o = (struct object *)this;
    REFIID own = o->base.items.lpVtbl == &items_table ? &IID_IEnumVARIANT : &IID_IDispatch;
    *out = IsEqualIID(id, &IID_IUnknown) || IsEqualIID(id, own) ? this : NULL;
    if (*out == NULL) return E_NOINTERFACE;
    InterlockedIncrement(&o->references);
    return S_OK;
}

static ULONG STDMETHODCALLTYPE object_add_ref(IUnknown *this) { return (ULONG)InterlockedIncrement(&((struct object *)this)->references); }

static ULONG STDMETHODCALLTYPE object_release(IUnknown *this) {
    struct object *o = (struct object *)this;
    LONG left = InterlockedDecrement(&o->references);
    if (left == 0) {
        for (int i = 0; i < EXCLUSIONS; i++) VariantClear(&o->values[i]);
        free(o);
        InterlockedDecrement(&object_count);
    }
    return (ULONG)left;
}

static HRESULT STDMETHODCALLTYPE items_next(IEnumVARIANT *this, ULONG wanted, VARIANT *out, ULONG *got) {
    struct object *o = (struct object *)this;
    ULONG n = 0;
    HRESULT code = o->spared ? S_OK : enumeration_fault(L"wmi", o->given);
    if (SUCCEEDED(code) && _wcsicmp(o->name, PREFERENCE_CLASS) != 0) code = INVALID_CLASS;
    if (SUCCEEDED(code) && o->given == 0 && wanted > 0 && SUCCEEDED(code = return_object(&out[0], PREFERENCE, NULL))) n = 1;
    o->given += n;
    if (got != NULL) *got = n;
    return FAILED(code) ? code : n == wanted ? S_OK : S_FALSE;
}

static HRESULT STDMETHODCALLTYPE items_skip(IEnumVARIANT *this, ULONG count) {
    ((struct object *)this)->given += count;
    return S_OK;
}

static HRESULT STDMETHODCALLTYPE items_reset(IEnumVARIANT *this) {
    ((struct object *)this)->given = 0;
    return S_OK;
}

static HRESULT STDMETHODCALLTYPE items_clone(IEnumVARIANT *this, IEnumVARIANT **out) {
    (void)this, (void)out;
    return E_NOTIMPL;
}

/* Both tables begin with IUnknown, whose functions accept any object. */
#define UNKNOWN(kind)                                                                                                                          \
    (HRESULT(STDMETHODCALLTYPE *)(kind *, REFIID, void **))(void *)object_query, (ULONG(STDMETHODCALLTYPE *)(kind *))(void *)object_add_ref,    \
        (ULONG(STDMETHODCALLTYPE *)(kind *))(void *)object_release

static IDispatchVtbl dispatch_table = {UNKNOWN(IDispatch), dispatch_type_count, dispatch_type, dispatch_names, dispatch_invoke};
static IEnumVARIANTVtbl items_table = {UNKNOWN(IEnumVARIANT), items_next, items_skip, items_reset, items_clone};

/* ---- the class ---- */

static HRESULT STDMETHODCALLTYPE factory_query(IClassFactory *this, REFIID id, void **out) {
    *out = IsEqualIID(id, &IID_IUnknown) || IsEqualIID(id, &IID_IClassFactory) ? this : NULL;
    return *out != NULL ? S_OK : E_NOINTERFACE;
}

/* The factory is never freed. */
static ULONG STDMETHODCALLTYPE factory_references(IClassFactory *this) {
    (void)this;
    return 1;
}

static HRESULT STDMETHODCALLTYPE factory_create(IClassFactory *this, IUnknown *outer, REFIID id, void **out) {
    (void)this;
    *out = NULL;
    if (outer != NULL) return CLASS_E_NOAGGREGATION;
    struct object *made = make(LOCATOR, NULL);
    if (made == NULL) return E_OUTOFMEMORY;
    HRESULT code = object_query((IUnknown *)made, id, out);
    object_release((IUnknown *)made);
    return code;
}

static HRESULT STDMETHODCALLTYPE factory_lock(IClassFactory *this, BOOL lock) {
    (void)this, (void)lock;
    return S_OK;
}

static IClassFactoryVtbl factory_table = {factory_query, factory_references, factory_references, factory_create, factory_lock};
static IClassFactory factory = {&factory_table};

HRESULT WINAPI DllGetClassObject(REFCLSID class, REFIID id, void **out) {
    *out = NULL;
    return IsEqualCLSID(class, &CLSID_Locator) ? factory_query(&factory, id, out) : CLASS_E_CLASSNOTAVAILABLE;
}

HRESULT WINAPI DllCanUnloadNow(void) { return object_count == 0 ? S_OK : S_FALSE; }

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}
