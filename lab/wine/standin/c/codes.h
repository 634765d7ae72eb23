/* Error codes of the Host Compute Network API. They are in Windows' winerror.h, but not in mingw-w64's. */
#ifndef LAB_CODES_H
#define LAB_CODES_H

#include <winerror.h>

#define HCN_E_NETWORK_NOT_FOUND ((HRESULT)0x803B0001)
#define HCN_E_ENDPOINT_NOT_FOUND ((HRESULT)0x803B0002)
#define HCN_E_NETWORK_ALREADY_EXISTS ((HRESULT)0x803B0010)
#define HCN_E_REQUEST_UNSUPPORTED ((HRESULT)0x803B0015)
#define HCN_E_INVALID_JSON ((HRESULT)0x803B001B)
#define HCN_E_INVALID_IP ((HRESULT)0x803B001E)
#define HCN_E_ADDR_INVALID_OR_RESERVED ((HRESULT)0x803B002F)

#endif
