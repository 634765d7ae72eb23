package windows

import (
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestAccessOf(t *testing.T) {
	administrators := map[string]string{
		"a file as it is made":                        administratorsFileSDDL,
		"a folder as it is made":                      administratorsFolderSDDL,
		"a folder as Windows prints it":               "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
		"identifiers and rights in full":              "O:S-1-5-32-544G:S-1-5-18D:P(A;;0x1f01ff;;;S-1-5-18)(A;;0x1f01ff;;;S-1-5-32-544)",
		"SYSTEM as the owner, and an audit rule":      "O:SYG:SYD:P(A;;FA;;;SY)(A;;FA;;;BA)S:AI(AU;SA;FA;;;WD)",
		"SYSTEM alone":                                "O:SYD:P(A;;FA;;;SY)",
		"a DACL that was inherited before protection": "O:BAD:PARAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
		"a DACL in the order of another editor":       "O:BAG:DUD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)",
	}
	for name, sddl := range administrators {
		t.Run("for administrators only: "+name, func(t *testing.T) {
			if got := accessOf(sddl); got != host.AccessAdministrators {
				t.Errorf("%s: %s", sddl, got)
			}
		})
	}
	others := map[string]string{
		"inherited permissions":             "O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)",
		"users who may read":                "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)",
		"an account of its own":             "O:BAD:P(A;;FA;;;SY)(A;;FA;;;S-1-5-21-1-2-3-1001)",
		"an owner who could open it":        "O:S-1-5-21-1-2-3-1001D:P(A;;FA;;;SY)(A;;FA;;;BA)",
		"everyone, by the lack of a DACL":   "O:BAG:SYD:NO_ACCESS_CONTROL",
		"nobody":                            "O:BAG:SYD:P",
		"a conditional permission":          `O:BAD:P(A;;FA;;;SY)(XA;;FA;;;BA;(exists))`,
		"a refusal":                         "O:BAD:P(D;;FA;;;BA)(A;;FA;;;SY)",
		"a descriptor that cannot be read":  "",
		"half a descriptor":                 "O:BAD:P(A;;FA",
		"a creator's permission":            "O:BAD:P(A;;FA;;;SY)(A;OICIIO;FA;;;CO)",
		"a DACL in the place of the owner":  "D:P(A;;FA;;;SY)(A;;FA;;;BA)",
		"protection in the audit list only": "O:BAD:(A;;FA;;;SY)(A;;FA;;;BA)S:P(AU;SA;FA;;;WD)",
	}
	for name, sddl := range others {
		t.Run("not for administrators only: "+name, func(t *testing.T) {
			if got := accessOf(sddl); got != host.AccessInherited {
				t.Errorf("%s: %s", sddl, got)
			}
		})
	}
}

func FuzzAccessOf(f *testing.F) {
	f.Add(administratorsFolderSDDL)
	f.Add("O:BAG:SYD:PAI(A;OICI;FA;;;SY)S:(AU;;FA;;;WD)")
	f.Fuzz(func(t *testing.T, sddl string) {
		if access := accessOf(sddl); access != host.AccessInherited && access != host.AccessAdministrators {
			t.Error(access)
		}
	})
}
