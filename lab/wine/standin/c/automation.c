/* The implementation of HNetCfg.FwPolicy2 and HNetCfg.FwRule; see firewall.c and automation.h. */
#include "automation.h"

#include <stdlib.h>
#include <wchar.h>

/* object is any of the three automation objects. */
struct object {
    IDispatch dispatch; /* must be first: a pointer to one is a pointer to the other */
    LONG references;
    enum class class;
    struct rule rule; /* of RULE */
};

static IDispatchVtbl dispatch_table;

/* The named members of each class. */
enum member { RULES_OF_POLICY = 1, CURRENT_PROFILES, FIREWALL_ENABLED, MODIFY_STATE, COUNT, ADD, REMOVE, ITEM, TEXT_MEMBER = 100, NUMBER_MEMBER = 200 };

static const struct {
    enum class class;
    const WCHAR *name;
    DISPID id;
} members[] = {
    {POLICY, L"Rules", RULES_OF_POLICY},
    {POLICY, L"CurrentProfileTypes", CURRENT_PROFILES},
    {POLICY, L"FirewallEnabled", FIREWALL_ENABLED},
    {POLICY, L"LocalPolicyModifyState", MODIFY_STATE},
    {RULES, L"Count", COUNT},
    {RULES, L"Add", ADD},
    {RULES, L"Remove", REMOVE},
    {RULES, L"Item", ITEM},
    {RULES, L"_NewEnum", DISPID_NEWENUM},
    {RULE, L"Name", TEXT_MEMBER + NAME},
    {RULE, L"Description", TEXT_MEMBER + DESCRIPTION},
    {RULE, L"ApplicationName", TEXT_MEMBER + APPLICATION},
    {RULE, L"ServiceName", TEXT_MEMBER + SERVICE},
    {RULE, L"Grouping", TEXT_MEMBER + GROUPING},
    {RULE, L"LocalPorts", TEXT_MEMBER + LOCAL_PORTS},
    {RULE, L"RemotePorts", TEXT_MEMBER + REMOTE_PORTS},
    {RULE, L"LocalAddresses", TEXT_MEMBER + LOCAL_ADDRESSES},
    {RULE, L"RemoteAddresses", TEXT_MEMBER + REMOTE_ADDRESSES},
    {RULE, L"IcmpTypesAndCodes", TEXT_MEMBER + ICMP},
    {RULE, L"InterfaceTypes", TEXT_MEMBER + INTERFACE_TYPES},
    {RULE, L"Protocol", NUMBER_MEMBER + PROTOCOL},
    {RULE, L"Direction", NUMBER_MEMBER + DIRECTION},
    {RULE, L"Action", NUMBER_MEMBER + ACTION},
    {RULE, L"Profiles", NUMBER_MEMBER + PROFILES},
    {RULE, L"Enabled", NUMBER_MEMBER + ENABLED},
    {RULE, L"EdgeTraversal", NUMBER_MEMBER + EDGE_TRAVERSAL},
};

/* ---- rules ---- */

static int has_ports(const struct rule *rule) {
    return rule->number[PROTOCOL] == PROTOCOL_TCP || rule->number[PROTOCOL] == PROTOCOL_UDP;
}

/* is_port_list accepts "*", numbers and ranges, separated by commas. */
static int is_port_list(const WCHAR *text) {
    if (wcscmp(text, L"*") == 0) return 1;
    for (;;) {
        WCHAR *end;
        long from = wcstol(text, &end, 10), to = from;
        if (end == text) return 0;
        if (*end == L'-') {
            text = end + 1;
            to = wcstol(text, &end, 10);
            if (end == text) return 0;
        }
        if (from < 0 || to < from || to > 65535) return 0;
        if (*end == 0) return 1;
        if (*end != L',') return 0;
        text = end + 1;
    }
}

static HRESULT put_text(struct rule *rule, enum text which, const WCHAR *value) {
    if (value == NULL) value = L"";
    if (wcslen(value) >= TEXT_LENGTH || wcschr(value, L'|') != NULL) return E_INVALIDARG;
    if (which == NAME && (*value == 0 || _wcsicmp(value, L"all") == 0)) return E_INVALIDARG;
    if (which == LOCAL_PORTS || which == REMOTE_PORTS) {
        if (!has_ports(rule) || !is_port_list(value)) return E_INVALIDARG;
    }
    wcscpy(rule->text[which], value);
    return S_OK;
}

static HRESULT put_number(struct rule *rule, enum number which, LONG value) {
    if (which == PROTOCOL && (value < 0 || value > PROTOCOL_ANY)) return E_INVALIDARG;
    if (which == DIRECTION && value != DIRECTION_IN && value != DIRECTION_OUT) return E_INVALIDARG;
    if (which == ACTION && value != 0 && value != 1) return E_INVALIDARG;
    rule->number[which] = which == ENABLED || which == EDGE_TRAVERSAL ? value != 0 : value;
    if (which == PROTOCOL) {
        wcscpy(rule->text[LOCAL_PORTS], has_ports(rule) ? L"*" : L"");
        wcscpy(rule->text[REMOTE_PORTS], has_ports(rule) ? L"*" : L"");
    }
    return S_OK;
}

/* put changes a property, and saves the rule if it belongs to the policy. */
static HRESULT put(struct object *o, DISPID id, VARIANT *argument) {
    VARIANT value;
    HRESULT code;
    VariantInit(&value);
    if (id < NUMBER_MEMBER) {
        code = VariantChangeType(&value, argument, 0, VT_BSTR);
        if (SUCCEEDED(code)) code = put_text(&o->rule, id - TEXT_MEMBER, V_BSTR(&value));
    } else {
        code = VariantChangeType(&value, argument, 0, VT_I4);
        if (SUCCEEDED(code)) code = put_number(&o->rule, id - NUMBER_MEMBER, V_I4(&value));
    }
    VariantClear(&value);
    if (SUCCEEDED(code) && o->rule.id[0] != 0) code = HRESULT_FROM_WIN32(rule_save(&o->rule));
    return code;
}

static HRESULT return_bool(VARIANT *result, int value) {
    V_VT(result) = VT_BOOL;
    V_BOOL(result) = value ? VARIANT_TRUE : VARIANT_FALSE;
    return S_OK;
}

static HRESULT return_number(VARIANT *result, LONG value) {
    V_VT(result) = VT_I4;
    V_I4(result) = value;
    return S_OK;
}

HRESULT return_object(VARIANT *result, enum class class, const struct rule *rule) {
    V_VT(result) = VT_DISPATCH;
    return make_object(class, rule, &V_DISPATCH(result));
}

static HRESULT get(const struct object *o, DISPID id, VARIANT *result) {
    if (id >= NUMBER_MEMBER) {
        LONG value = o->rule.number[id - NUMBER_MEMBER];
        int yes_no = id - NUMBER_MEMBER == ENABLED || id - NUMBER_MEMBER == EDGE_TRAVERSAL;
        return yes_no ? return_bool(result, value) : return_number(result, value);
    }
    V_VT(result) = VT_BSTR;
    V_BSTR(result) = SysAllocString(o->rule.text[id - TEXT_MEMBER]);
    return V_BSTR(result) != NULL ? S_OK : E_OUTOFMEMORY;
}

/* ---- the collection ---- */

static HRESULT add_rule(VARIANT *argument) {
    VARIANT value;
    VariantInit(&value);
    HRESULT code = VariantChangeType(&value, argument, 0, VT_DISPATCH);
    if (FAILED(code)) return code;
    struct object *o = (struct object *)V_DISPATCH(&value);
    if (o == NULL || o->dispatch.lpVtbl != &dispatch_table || o->class != RULE || o->rule.text[NAME][0] == 0) {
        code = E_INVALIDARG;
    } else {
        GUID id;
        if (o->rule.id[0] == 0 && SUCCEEDED(code = CoCreateGuid(&id))) StringFromGUID2(&id, o->rule.id, ARRAYSIZE(o->rule.id));
        if (SUCCEEDED(code)) code = HRESULT_FROM_WIN32(rule_save(&o->rule));
    }
    VariantClear(&value);
    return code;
}

/* named executes Item or Remove. */
static HRESULT named(DISPID id, VARIANT *argument, VARIANT *result) {
    VARIANT name;
    struct rule *rule = malloc(sizeof *rule);
    if (rule == NULL) return E_OUTOFMEMORY;
    VariantInit(&name);
    HRESULT code = VariantChangeType(&name, argument, 0, VT_BSTR);
    if (SUCCEEDED(code)) {
        const WCHAR *wanted = V_BSTR(&name) != NULL ? V_BSTR(&name) : L"";
        LONG found = id == REMOVE ? rule_removed(wanted, rule) : rule_named(wanted, rule);
        if (found == ERROR_SUCCESS && id == REMOVE) found = rule_delete(rule);
        if (found == ERROR_FILE_NOT_FOUND && id == REMOVE) found = ERROR_SUCCESS;
        code = HRESULT_FROM_WIN32(found);
        if (SUCCEEDED(code) && id == ITEM) code = return_object(result, RULE, rule);
    }
    VariantClear(&name);
    free(rule);
    return code;
}

static LONG count_rules(void) {
    HKEY key;
    DWORD count = 0;
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, RULES_KEY, 0, KEY_READ, &key) != ERROR_SUCCESS) return 0;
    RegQueryInfoKeyW(key, NULL, NULL, NULL, NULL, NULL, NULL, &count, NULL, NULL, NULL, NULL);
    RegCloseKey(key);
    return (LONG)count;
}

/* ---- IDispatch ---- */

static HRESULT call(struct object *o, DISPID id, WORD flags, DISPPARAMS *p, VARIANT *result) {
    int putting = (flags & (DISPATCH_PROPERTYPUT | DISPATCH_PROPERTYPUTREF)) != 0;
    int method = id == ADD || id == REMOVE || id == ITEM;
    UINT wanted = putting || method || id == FIREWALL_ENABLED;
    /* As in netfw.idl, a method cannot be read as a property, and a property cannot be called. */
    if (!putting && (flags & (method ? DISPATCH_METHOD : DISPATCH_PROPERTYGET)) == 0) return DISP_E_MEMBERNOTFOUND;
    if (p->cArgs != wanted) return DISP_E_BADPARAMCOUNT;
    if (putting) return o->class == RULE ? put(o, id, &p->rgvarg[0]) : DISP_E_MEMBERNOTFOUND;
    switch (id) {
    case RULES_OF_POLICY:
        return return_object(result, RULES, NULL);
    case CURRENT_PROFILES:
        return return_number(result, 4); /* the public profile */
    case FIREWALL_ENABLED:
        return return_bool(result, 1);
    case MODIFY_STATE:
        return return_number(result, 0);
    case COUNT:
        return return_number(result, count_rules());
    case ADD:
        return add_rule(&p->rgvarg[0]);
    case REMOVE:
    case ITEM:
        return named(id, &p->rgvarg[0], result);
    case DISPID_NEWENUM:
        V_VT(result) = VT_UNKNOWN;
        return make_enumerator(0, &V_UNKNOWN(result));
    default:
        return get(o, id, result);
    }
}

static int knows(enum class class, DISPID id) {
    for (size_t i = 0; i < ARRAYSIZE(members); i++) {
        if (members[i].class == class && members[i].id == id) return 1;
    }
    return 0;
}

static HRESULT STDMETHODCALLTYPE dispatch_invoke(IDispatch *this, DISPID id, REFIID reserved, LCID locale, WORD flags, DISPPARAMS *p,
                                                 VARIANT *result, EXCEPINFO *exception, UINT *argument) {
    struct object *o = (struct object *)this;
    VARIANT ignored;
    (void)reserved, (void)locale, (void)argument;
    if (!knows(o->class, id)) return DISP_E_MEMBERNOTFOUND;
    VariantInit(&ignored);
    if (result == NULL) result = &ignored;
    VariantInit(result);
    HRESULT code = call(o, id, flags, p, result);
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

static HRESULT STDMETHODCALLTYPE dispatch_query(IDispatch *this, REFIID id, void **out) {
    *out = IsEqualIID(id, &IID_IUnknown) || IsEqualIID(id, &IID_IDispatch) ? this : NULL;
    if (*out == NULL) return E_NOINTERFACE;
    IDispatch_AddRef(this);
    return S_OK;
}

static ULONG STDMETHODCALLTYPE dispatch_add_ref(IDispatch *this) { return (ULONG)InterlockedIncrement(&((struct object *)this)->references); }

static ULONG STDMETHODCALLTYPE dispatch_release(IDispatch *this) {
    LONG left = InterlockedDecrement(&((struct object *)this)->references);
    if (left == 0) {
        free(this);
        InterlockedDecrement(&object_count);
    }
    return (ULONG)left;
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

static IDispatchVtbl dispatch_table = {
    dispatch_query, dispatch_add_ref, dispatch_release, dispatch_type_count, dispatch_type, dispatch_names, dispatch_invoke,
};

HRESULT make_object(enum class class, const struct rule *rule, IDispatch **out) {
    struct object *o = calloc(1, sizeof *o);
    *out = (IDispatch *)o;
    if (o == NULL) return E_OUTOFMEMORY;
    o->dispatch.lpVtbl = &dispatch_table;
    o->references = 1;
    o->class = class;
    rule_default(&o->rule);
    if (rule != NULL) o->rule = *rule;
    InterlockedIncrement(&object_count);
    return S_OK;
}
