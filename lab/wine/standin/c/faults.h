/*
 * Faults of the stand-ins, for tests: values of HKLM\SOFTWARE\wmco-lab\faults\<part>, where <part> is firewall, wmi, hns or power.
 *
 *   firewall, wmi  FailAt     how many items an enumeration gives before it fails; as many as there are: it fails in place of its end
 *                  FailCode   the HRESULT with which it fails; without it nothing fails
 *   wmi            Skip       how many enumerations are complete before
 *                  ReturnCode what a method of Defender returns instead of doing its work
 *   hns            Vanish     how many objects are deleted by another program between being listed and being opened, deleted or attached
 *                  Skip       how many objects are opened, deleted or attached before
 *                  Name       only objects of that name vanish; without it all
 *                  Code       the HRESULT of an object that has vanished; without it, that of its kind
 *                  Answer     the HRESULT of each call of the service
 *                  AttachFails   how many attachments to the host fail before one succeeds
 *                  AttachCodes   not 0: a refused attachment is an HRESULT of the call, and not a text in its response
 *                  AttachedState the state of attached endpoints in place of 2
 *                  ManagementIP  the address of the adapter that networks use; without it, networks have none
 *   power          Initiate   the error with which InitiateSystemShutdownExW fails
 *                  ExitInSessions  1: ExitWindowsEx works in sessions of the SSH server
 */
#ifndef LAB_FAULTS_H
#define LAB_FAULTS_H

#include <windows.h>

/* fault_number reads a number of a part; 0 when it is not set. */
DWORD fault_number(const WCHAR *part, const WCHAR *name);

/* fault_text reads a text of a part into out; empty when it is not set. */
void fault_text(const WCHAR *part, const WCHAR *name, WCHAR *out, DWORD count);

/* fault_countdown takes 1 from a number and returns 1; 0 when the number was 0. */
int fault_countdown(const WCHAR *part, const WCHAR *name);

/* enumeration_fault is the code with which an enumeration fails after so many items; S_OK: it goes on. */
HRESULT enumeration_fault(const WCHAR *part, DWORD given);

#endif
