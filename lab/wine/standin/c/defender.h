/* The objects of wmco-lab-wmi.dll (wmi.c), and the exclusions of Defender. */
#ifndef LAB_DEFENDER_H
#define LAB_DEFENDER_H

#define CINTERFACE
#define COBJMACROS
#include <objbase.h>
#include <oleauto.h>

/*
 * The kinds of objects. PREFERENCE is the instance of MSFT_MpPreference, CLASS the class, and PARAMETERS a set of
 * parameters.
 */
enum class { LOCATOR, SERVICES, OBJECT_SET, PREFERENCE, CLASS, METHODS, METHOD, PARAMETER_CLASS, PARAMETERS, RESULT };

/* The properties with exclusions. */
enum exclusions { PROCESSES, PATHS, EXCLUSIONS };

/* exclusions_read returns the exclusions of a property: an array of VARIANTs with strings, or NULL. */
HRESULT exclusions_read(enum exclusions which, VARIANT *out);

/* exclusions_change adds or removes the strings of an array. */
HRESULT exclusions_change(enum exclusions which, const VARIANT *texts, int add);

#endif
