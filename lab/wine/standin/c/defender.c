/* The exclusions of Microsoft Defender Antivirus, in the registry keys of Windows; see defender.h. */
#include "defender.h"

static const WCHAR *const keys[EXCLUSIONS] = {
    L"SOFTWARE\\Microsoft\\Windows Defender\\Exclusions\\Processes",
    L"SOFTWARE\\Microsoft\\Windows Defender\\Exclusions\\Paths",
};

enum { VALUE_LENGTH = 1024 };

static LONG open_key(enum exclusions which, HKEY *key) {
    return RegCreateKeyExW(HKEY_LOCAL_MACHINE, keys[which], 0, NULL, 0, KEY_ALL_ACCESS, NULL, key, NULL);
}

HRESULT exclusions_read(enum exclusions which, VARIANT *out) {
    HKEY key;
    DWORD count = 0;
    V_VT(out) = VT_NULL;
    LONG code = open_key(which, &key);
    if (code != ERROR_SUCCESS) return HRESULT_FROM_WIN32(code);
    RegQueryInfoKeyW(key, NULL, NULL, NULL, NULL, NULL, NULL, &count, NULL, NULL, NULL, NULL);
    SAFEARRAY *array = count > 0 ? SafeArrayCreateVector(VT_VARIANT, 0, count) : NULL;
    for (DWORD i = 0; i < count && array != NULL; i++) {
        WCHAR name[VALUE_LENGTH];
        DWORD length = VALUE_LENGTH;
        VARIANT text;
        LONG at = (LONG)i;
        if (RegEnumValueW(key, i, name, &length, NULL, NULL, NULL, NULL) != ERROR_SUCCESS) *name = 0;
        V_VT(&text) = VT_BSTR;
        V_BSTR(&text) = SysAllocString(name);
        SafeArrayPutElement(array, &at, &text); /* copies the string */
        VariantClear(&text);
    }
    RegCloseKey(key);
    if (array != NULL) {
        V_VT(out) = VT_ARRAY | VT_VARIANT;
        V_ARRAY(out) = array;
    }
    return S_OK;
}

/* text_at returns an element of an array of strings or VARIANTs. The caller frees the string. */
static BSTR text_at(const VARIANT *array, LONG i) {
    BSTR text = NULL;
    VARIANT element;
    if (V_VT(array) == (VT_ARRAY | VT_BSTR)) return SUCCEEDED(SafeArrayGetElement(V_ARRAY(array), &i, &text)) ? text : NULL;
    VariantInit(&element);
    if (V_VT(array) == (VT_ARRAY | VT_VARIANT) && SUCCEEDED(SafeArrayGetElement(V_ARRAY(array), &i, &element)) && V_VT(&element) == VT_BSTR) {
        text = SysAllocString(V_BSTR(&element));
    }
    VariantClear(&element);
    return text;
}

HRESULT exclusions_change(enum exclusions which, const VARIANT *texts, int add) {
    HKEY key;
    LONG lower, upper;
    if (V_VT(texts) == VT_EMPTY) return S_OK;
    if (!(V_VT(texts) & VT_ARRAY) || FAILED(SafeArrayGetLBound(V_ARRAY(texts), 1, &lower)) || FAILED(SafeArrayGetUBound(V_ARRAY(texts), 1, &upper))) {
        return DISP_E_TYPEMISMATCH;
    }
    LONG code = open_key(which, &key);
    if (code != ERROR_SUCCESS) return HRESULT_FROM_WIN32(code);
    for (LONG i = lower; i <= upper; i++) {
        DWORD none = 0;
        BSTR text = text_at(texts, i);
        if (text != NULL && add) RegSetValueExW(key, text, 0, REG_DWORD, (const BYTE *)&none, sizeof none);
        if (text != NULL && !add) RegDeleteValueW(key, text);
        SysFreeString(text);
    }
    RegCloseKey(key);
    return S_OK;
}
