/*
 * The optional features of a lab host: HKLM\SOFTWARE\wmco-lab\features\<name> with the values State (a
 * DismPackageFeatureState), Restart (1: a change needs a reboot) and DisplayName. A volatile key marks a pending
 * change. A boot deletes this key, and a pending change without the key is in effect.
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

/* feature_find reads a feature by its name, ignoring case; ERROR_FILE_NOT_FOUND if this edition lacks the feature. */
LONG feature_find(const WCHAR *name, struct feature *found);

/* feature_at reads the feature at an index; ERROR_NO_MORE_ITEMS after the last feature. */
LONG feature_at(DWORD index, struct feature *found);

/*
 * feature_set stores the new state of a feature. A pending state takes effect at the next boot, any other state at
 * once.
 */
LONG feature_set(const struct feature *changed, DWORD state);

#endif
