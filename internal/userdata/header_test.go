package userdata

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const header1 = "# windows-user-data 1\n# user: capi\n# public-key: " + publicLine +
	"\n# ports: 22 10250\n# end of header\n"

func TestParseHeader(t *testing.T) {
	for _, wrapper := range []string{"", "<powershell>\n", "#ps1_sysnative\n"} {
		t.Run(fmt.Sprintf("behind %q", wrapper), func(t *testing.T) {
			settings, err := ParseHeader([]byte(wrapper + header1 + "\nexit 1\n"))
			if err != nil || settings.User != "capi" || settings.PublicKey != publicLine ||
				fmt.Sprint(settings.Ports) != "[22 10250]" {
				t.Errorf("got %+v, %v", settings, err)
			}
		})
	}
	replaced := func(old, with string) string { return strings.Replace(header1, old, with, 1) }
	for name, script := range map[string]string{
		"nothing":                         "",
		"another's script":                "<powershell>\nInstall-WindowsFeature Web-Server\n</powershell>\n",
		"Ignition's":                      `{"ignition":{"version":"3.2.0"}}`,
		"text before the header":          "# a comment\n" + header1,
		"two wrappers":                    "<powershell>\n#ps1_sysnative\n" + header1,
		"a version of later days":         replaced("data 1", "data 2"),
		"a version that is no number":     replaced("data 1", "data one"),
		"a version with a zero before it": replaced("data 1", "data 01"),
		"no user":                         replaced("# user: capi\n", ""),
		"an empty user":                   replaced("capi", ""),
		"a user that ends the string":     replaced("capi", "a'; exit; '"),
		"a user of a domain":              replaced("capi", `CORP\jane`),
		"an invalid key":                  replaced("AAAAC3", "BBBB"),
		"a key with a comment":            replaced(publicLine, publicLine+" me@there"),
		"a key with options":              replaced(publicLine, `command="cmd" `+publicLine),
		"no key":                          replaced(publicLine, ""),
		"two keys": replaced("# public-key: "+publicLine+"\n",
			strings.Repeat("# public-key: "+publicLine+"\n", 2)),
		"no ports":                             replaced("# ports: 22 10250", "# ports:"),
		"a port that is too high":              replaced("10250", "65536"),
		"a port twice":                         replaced("22 10250", "22 22"),
		"ports that do not ascend":             replaced("22 10250", "10250 22"),
		"ports that are parted by a comma":     replaced("22 10250", "22,10250"),
		"port 0":                               replaced("22 10250", "0"),
		"a header that is cut":                 header1[:len(header1)-1],
		"a header that does not end":           replaced("# end of header\n", ""),
		"lines that end as on Windows":         strings.ReplaceAll(header1, "\n", "\r\n"),
		"a header that is not at the front":    strings.Repeat(" ", maxHeaderBytes) + header1,
		"a header as the cloud has encoded it": "PHBvd2Vyc2hlbGw+Cg==",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if settings, err := ParseHeader([]byte(script)); err == nil {
				t.Errorf("got %+v", settings)
			}
		})
	}
}

// ParseHeader accepts only headers that Generate could have written, and loses or adds nothing.
func FuzzParseHeader(f *testing.F) {
	for _, platform := range platforms {
		f.Add([]byte(mustGenerate(f, platform)))
	}
	f.Add([]byte(header1))
	f.Fuzz(func(t *testing.T, script []byte) {
		settings, err := ParseHeader(script)
		if err != nil {
			if settings.User != "" || settings.PublicKey != "" || settings.Ports != nil {
				t.Errorf("an error with settings: %+v", settings)
			}
			return
		}
		ports := strings.Trim(fmt.Sprint(settings.Ports), "[]")
		again := fmt.Sprintf("# windows-user-data %d\n# user: %s\n# public-key: %s\n# ports: %s\n# end of header\n",
			settings.Version, settings.User, settings.PublicKey, ports)
		at := bytes.Index(script, []byte(again))
		if at != 0 && (at < 0 || !bytes.Contains([]byte("<powershell>\n#ps1_sysnative\n"), script[:at])) {
			t.Errorf("%+v is not what stands there", settings)
		}
	})
}
