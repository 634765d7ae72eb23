/*
 * The optional features of a lab host: HKLM\SOFTWARE\wmco-lab\features\<name> with the values State (a DismPackageFeatureState),
 * Restart (1: a change waits for a reboot) and DisplayName. A change that waits is marked by a volatile key, which a boot forgets:
 * where the mark is gone, the change is in force.
 */
#ifndef LAB_FEATURES_H
#define LAB_FEATURES_H

#include <windows.h>

#define FEATURES_KEY L"SOFTWARE\\wmco-lab\\features"
#define FEATURES_PENDING_KEY L"SOFTWARE\\wmco-lab\\pending"

struct feature {
    WCHAR name[128];
    WCHAR display_name[256];
    DWORD state; /* a DismPackageFeatureState */
    DWORD restart;
};

/* feature_find reads a feature by its name, whatever its case; ERROR_FILE_NOT_FOUND when this edition does not have it. */
LONG feature_find(const WCHAR *name, struct feature *found);

/* feature_at reads the feature of that number; ERROR_NO_MORE_ITEMS after the last. */
LONG feature_at(DWORD index, struct feature *found);

/* feature_set keeps a feature's new state, which is in force at once or, when it is a pending one, after the next boot. */
LONG feature_set(const struct feature *changed, DWORD state);

#endif
