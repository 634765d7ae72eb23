/*
 * Faults of the stand-ins, for tests: values of HKLM\SOFTWARE\wmco-lab\faults\<part>; <part> is firewall, wmi, hns or
 * power.
 *
 *   firewall, wmi  FailAt         number of items before an enumeration fails; the total number: failure at its end
 *                  FailCode       HRESULT of the failed enumeration; if unset, nothing fails
 *   wmi            Skip           number of enumerations that succeed before the first failure
 *                  ReturnCode     return value of methods of Defender, which then have no effect
 *   hns            Vanish         number of objects that another program deletes after listing, and before they are
 *                                 opened, deleted or attached
 *                  Skip           number of objects that are opened, deleted or attached before the first one vanishes
 *                  Name           name of the objects that vanish; if unset, all objects
 *                  Code           HRESULT for an object that has vanished; if unset, the code of its kind
 *                  Answer         HRESULT of each call of the service
 *                  AttachFails    number of attachments to the host that fail before one succeeds
 *                  AttachCodes    not 0: the HRESULT of the call, and not a text in the response, rejects an attachment
 *                  AttachedState  state of attached endpoints instead of 2
 *                  ManagementIP   address of the adapter that networks use; if unset, networks have no address
 *   power          Initiate       error code of InitiateSystemShutdownExW
 *                  ExitInSessions 1: ExitWindowsEx works in sessions of the SSH server
 */
#ifndef LAB_FAULTS_H
#define LAB_FAULTS_H

#include <windows.h>

/* fault_number returns a number of a part, or 0 if unset. */
DWORD fault_number(const WCHAR *part, const WCHAR *name);

/* fault_text copies a string of a part to out, or the empty string if unset. */
void fault_text(const WCHAR *part, const WCHAR *name, WCHAR *out, DWORD count);

/* fault_countdown decrements a number and returns 1, or returns 0 if the number was 0. */
int fault_countdown(const WCHAR *part, const WCHAR *name);

/* enumeration_fault returns the error of an enumeration after the given number of items, or S_OK if it continues. */
HRESULT enumeration_fault(const WCHAR *part, DWORD given);

#endif
