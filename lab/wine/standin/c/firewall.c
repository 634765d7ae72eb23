/*
 * wmco-lab-firewall.dll: the COM classes HNetCfg.FwPolicy2 and HNetCfg.FwRule of Windows Defender Firewall, in process
 * and late-bound (IDispatch only, as scripts and go-ole use it).
 *
 * It simulates: the collection of rules (Count, Item, Add, Remove, _NewEnum) and the properties of a rule, in the
 * registry key of Windows (rules.h); several rules of one name; changes to a rule of the policy, which take effect at
 * once. Ports are rejected before the protocol is TCP or UDP, as are invalid ports and the character "|". A missing
 * rule returns 0x80070002, but Remove of a missing rule succeeds. Remove of a name of several rules prefers an outbound
 * rule. A method cannot be read as a property, and a property cannot be called as a method. An enumeration can fail at
 * its first rule, at a later rule, or at its end (faults.h).
 *
 * It does not simulate: the firewall. No packet is blocked. There are no vtables of INetFwPolicy2 and INetFwRule, no
 * type library, no group policy and no lists of interfaces, and addresses are not validated.
 */
#include "automation.h"

#include <initguid.h>

DEFINE_GUID(CLSID_Policy, 0xE2B3C97F, 0x6AE1, 0x41AC, 0x81, 0x7A, 0xF6, 0xF9, 0x21, 0x66, 0xD7, 0xDD);
DEFINE_GUID(CLSID_Rule, 0x2C5BC43E, 0x3369, 0x4C33, 0xAB, 0x0C, 0xBE, 0x94, 0x69, 0x67, 0x7A, 0xF4);

LONG object_count;

static HRESULT STDMETHODCALLTYPE factory_query(IClassFactory *this, REFIID id, void **out) {
    *out = IsEqualIID(id, &IID_IUnknown) || IsEqualIID(id, &IID_IClassFactory) ? this : NULL;
    return *out != NULL ? S_OK : E_NOINTERFACE;
}

/* The two factories are never freed. */
static ULONG STDMETHODCALLTYPE factory_add_ref(IClassFactory *this) {
    (void)this;
    return 2;
}

static ULONG STDMETHODCALLTYPE factory_release(IClassFactory *this) {
    (void)this;
    return 1;
}

static HRESULT create(enum class class, IUnknown *outer, REFIID id, void **out) {
    IDispatch *made;
    *out = NULL;
    if (outer != NULL) return CLASS_E_NOAGGREGATION;
    HRESULT code = make_object(class, NULL, &made);
    if (FAILED(code)) return code;
    code = IDispatch_QueryInterface(made, id, out);
    IDispatch_Release(made);
    return code;
}

static HRESULT STDMETHODCALLTYPE create_policy(IClassFactory *this, IUnknown *outer, REFIID id, void **out) {
    (void)this;
    return create(POLICY, outer, id, out);
}

static HRESULT STDMETHODCALLTYPE create_rule(IClassFactory *this, IUnknown *outer, REFIID id, void **out) {
    (void)this;
    return create(RULE, outer, id, out);
}

static HRESULT STDMETHODCALLTYPE factory_lock(IClassFactory *this, BOOL lock) {
    (void)this;
    if (lock) {
        InterlockedIncrement(&object_count);
    } else {
        InterlockedDecrement(&object_count);
    }
    return S_OK;
}

static IClassFactoryVtbl policy_table = {factory_query, factory_add_ref, factory_release, create_policy, factory_lock};
static IClassFactoryVtbl rule_table = {factory_query, factory_add_ref, factory_release, create_rule, factory_lock};
static IClassFactory policy_factory = {&policy_table}, rule_factory = {&rule_table};

HRESULT WINAPI DllGetClassObject(REFCLSID class, REFIID id, void **out) {
    *out = NULL;
    if (IsEqualCLSID(class, &CLSID_Policy)) return IClassFactory_QueryInterface(&policy_factory, id, out);
    if (IsEqualCLSID(class, &CLSID_Rule)) return IClassFactory_QueryInterface(&rule_factory, id, out);
    return CLASS_E_CLASSNOTAVAILABLE;
}

HRESULT WINAPI DllCanUnloadNow(void) { return object_count == 0 ? S_OK : S_FALSE; }

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}
