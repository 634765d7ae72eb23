package windows

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestAccessOf(t *testing.T) {
	administrators := map[string]string{
		"a file as it is made":                        administratorsFileSDDL,
		"a folder as it is made":                      administratorsDirSDDL,
		"a folder as Windows prints it":               "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
		"identifiers and rights in full":              "O:S-1-5-32-544G:S-1-5-18D:P(A;;0x1f01ff;;;S-1-5-18)(A;;0x1f01ff;;;S-1-5-32-544)",
		"SYSTEM as the owner, and an audit rule":      "O:SYG:SYD:P(A;;FA;;;SY)(A;;FA;;;BA)S:AI(AU;SA;FA;;;WD)",
		"SYSTEM alone":                                "O:SYD:P(A;;FA;;;SY)",
		"a DACL that was inherited before protection": "O:BAD:PARAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
		"a DACL in the order of another editor":       "O:BAG:DUD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)",
		"flags in another order":                      "O:BAD:AIARP(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
	}
	for name, sddl := range administrators {
		t.Run("for administrators only: "+name, func(t *testing.T) {
			if got := accessOf(sddl); got != host.AccessAdministrators {
				t.Errorf("%s: %s", sddl, got)
			}
		})
	}
	rejected := map[string]string{
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
		"users who may add to a readable folder": "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)" +
			"(A;CI;0x6;;;BU)(A;OICIIO;FA;;;CO)",
		"users with all rights below a readable folder": "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)" +
			"(A;CIIO;FA;;;BU)(A;OICIIO;FA;;;CO)",
		"everyone, by a protected null DACL":                   "O:BAG:SYD:PNO_ACCESS_CONTROL",
		"everyone, by a null DACL that is marked as inherited": "O:BAG:SYD:PARAINO_ACCESS_CONTROL",
		"a DACL with a flag that is not known":                 "O:BAD:PXX(A;;FA;;;SY)(A;;FA;;;BA)",
		"entries behind a null DACL":                           "O:BAD:PNO_ACCESS_CONTROL(A;;FA;;;SY)",
		"no DACL":                                              "O:BAG:SY",
		"an entry without its end":                             "O:BAD:P(A;;FA;;;SY",
		"a readable folder of a user":                          strings.Replace(readableDirSDDL, "O:BA", "O:S-1-5-21-1-2-3-1001", 1),
		"a readable folder with an account of its own":         readableDirSDDL + "(A;OICI;FA;;;S-1-5-21-1-2-3-1001)",
		"a readable folder that inherits":                      strings.Replace(readableDirSDDL, "D:P", "D:AI", 1),
	}
	readable := map[string]string{
		"a folder as it is made": readableDirSDDL,
		"a folder as Windows prints it": "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)" +
			"(A;CIIO;DCLC;;;BU)(A;OICIIO;FA;;;CO)",
		"identifiers in full, in another order": "O:S-1-5-18D:P(A;OICIIO;0x1f01ff;;;S-1-3-0)(A;CIIO;0x6;;;S-1-5-32-545)" +
			"(A;OICI;0x1200a9;;;S-1-5-32-545)(A;OICI;FA;;;S-1-5-32-544)",
	}
	for name, sddl := range readable {
		t.Run("to be read by all users: "+name, func(t *testing.T) {
			if got := accessOf(sddl); got != host.AccessReadable {
				t.Errorf("%s: %s", sddl, got)
			}
		})
	}
	for name, sddl := range rejected {
		t.Run("not for administrators only: "+name, func(t *testing.T) {
			if got := accessOf(sddl); got != host.AccessInherited {
				t.Errorf("%s: %s", sddl, got)
			}
		})
	}
}

func TestForeign(t *testing.T) {
	const user = "S-1-5-21-1-2-3-1001"
	for name, test := range map[string]struct {
		sddl string
		want bool
	}{
		"what an administrator makes in C:\\": {"O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;0x1200a9;;;BU)" +
			"(A;CIID;LC;;;BU)(A;CIID;DC;;;BU)(A;OICIIOID;GA;;;CO)", false},
		"what a user makes in C:\\":                     {"O:" + user + "D:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;ID;FA;;;" + user + ")", true},
		"a readable folder":                             {readableDirSDDL, false},
		"what belongs to Windows":                       {"O:" + trustedInstaller + "D:P(A;;FA;;;" + trustedInstaller + ")", false},
		"a user may change its permissions":             {"O:BAD:(A;OICI;FA;;;SY)(A;;RCWD;;;" + user + ")", true},
		"a user may take it":                            {"O:BAD:(A;OICI;FA;;;SY)(A;;0x80000;;;" + user + ")", true},
		"a user may change it, but not its permissions": {"O:SYD:(A;OICI;FA;;;SY)(A;OICI;0x1301bf;;;" + user + ")", false},
		"rights that the folder above hands down":       {"O:BAD:AI(A;OICIID;FA;;;" + user + ")", false},
		"a right that is refused":                       {"O:BAD:P(D;;FA;;;" + user + ")", false},
		"everyone, by the lack of a DACL":               {"O:BAD:NO_ACCESS_CONTROL", true},
		"everyone, by a protected null DACL":            {"O:BAD:PNO_ACCESS_CONTROL", true},
		"everyone, by a null DACL marked as inherited":  {"O:BAD:PARAINO_ACCESS_CONTROL", true},
		"everyone, by a null DACL with flags behind":    {"O:BAD:NO_ACCESS_CONTROLP", true},
		"a null DACL before an audit list":              {"O:BAG:SYD:PNO_ACCESS_CONTROLS:AI(AU;SA;FA;;;WD)", true},
		"flags in another order":                        {"O:BAD:AIARP(A;OICI;FA;;;SY)", false},
		"a flag that is not known":                      {"O:BAD:PXX(A;;FA;;;SY)", true},
		"a DACL without entries, which admits no one":   {"O:BAD:P", false},
		"an entry that cannot be read":                  {"O:BAD:P(A;;FA", true},
		"an entry without its end":                      {"O:BAD:P(A;;FA;;;SY", true},
		"a right that an entry for objects grants":      {"O:BAD:P(OA;;WD;;;" + user + ")", true},
		"a right that an entry with a condition grants": {"O:BAD:P(XA;;WD;;;" + user + ";(exists))", true},
		"a descriptor that Windows could not convert":   {"", true},
		"a descriptor without an owner":                 {"D:P(A;;FA;;;SY)", true},
		"a descriptor without a DACL":                   {"O:BA", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isForeignControlled(test.sddl); got != test.want {
				t.Errorf("%s: %v", test.sddl, got)
			}
		})
	}
}

func FuzzAccessOf(f *testing.F) {
	f.Add(administratorsDirSDDL)
	f.Add(readableDirSDDL)
	f.Add("O:BAG:SYD:PAI(A;OICI;FA;;;SY)S:(AU;;FA;;;WD)")
	f.Fuzz(func(t *testing.T, sddl string) {
		if access := accessOf(sddl); access.IsRestricted() && isForeignControlled(sddl) {
			t.Errorf("%s is %s and foreign", sddl, access)
		}
	})
}

func TestSDDLOf_RestrictedAccessHasDescriptor(t *testing.T) {
	for _, c := range []struct {
		access host.Access
		folder bool
		want   string
	}{
		{host.AccessAdministrators, true, administratorsDirSDDL},
		{host.AccessAdministrators, false, administratorsFileSDDL},
		{host.AccessReadable, true, readableDirSDDL},
		{host.AccessInherited, true, ""},
	} {
		if got := sddlOf(c.access, c.folder); got != c.want {
			t.Errorf("%s, folder: %t: got %q, want %q", c.access, c.folder, got, c.want)
		}
	}
}
