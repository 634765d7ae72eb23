/* The objects of wmco-lab-wmi.dll (wmi.c), and the exclusions behind them. */
#ifndef LAB_DEFENDER_H
#define LAB_DEFENDER_H

#define CINTERFACE
#define COBJMACROS
#include <objbase.h>
#include <oleauto.h>

/* The kinds of objects. PREFERENCE is the instance of MSFT_MpPreference, CLASS the class; PARAMETERS is a set of them. */
enum class { LOCATOR, SERVICES, OBJECT_SET, PREFERENCE, CLASS, METHODS, METHOD, PARAMETER_CLASS, PARAMETERS, RESULT };

/* The properties that are exclusions. */
enum exclusions { PROCESSES, PATHS, EXCLUSIONS };

/* exclusions_read returns a property's exclusions: an array of VARIANTs with texts, or NULL. */
HRESULT exclusions_read(enum exclusions which, VARIANT *out);

/* exclusions_change adds the texts of an array or removes them. */
HRESULT exclusions_change(enum exclusions which, const VARIANT *texts, int add);

#endif
