package windows

import (
	"slices"
	"testing"
)

func TestAbsentCodes(t *testing.T) {
	for name, c := range map[string]struct {
		code   uint32
		absent bool
	}{
		"ERROR_NOT_FOUND":               {1168, true},
		"ERROR_NOT_FOUND as an HRESULT": {0x80070490, true},
		"HCN_E_NETWORK_NOT_FOUND":       {0x803B0001, true},
		"HCN_E_ENDPOINT_NOT_FOUND":      {0x803B0002, true},
		"HCN_E_MANAGER_STOPPED":         {0x803B0020, false},
		"HCN_E_POLICY_NOT_FOUND":        {0x803B0008, false},
		"no error":                      {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slices.Contains(absentCodes(), c.code); got != c.absent {
				t.Errorf("0x%08x: got %t", c.code, got)
			}
		})
	}
}
